"""What fairseq needs to run on today's Python and PyTorch."""

import argparse
import dataclasses
import functools
import logging
import multiprocessing
import sys
import types
import typing
import warnings

import numpy
import torch
from torch import nn

from .hooks import before_fairseq, mends, replaces

FUSED_KERNEL_WEIGHTS = (
    *("in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"),
    *("fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"),
)


@before_fairseq
def make_dataclass_defaults_hashable():
    """Let instances of fairseq's configuration classes, and of classes derived from them, be default values of
    dataclass fields.

    Why: since Python 3.11 a dataclass refuses unhashable defaults (``mutable default ... is not allowed``), and an
    instance of a dataclass with ``eq`` is unhashable. fairseq reads such defaults as class attributes (``hydra_init``
    looks at ``field.default``), so a ``default_factory`` would not do. Identity is the right hash here, because
    nothing compares these instances.
    Mends: ``fairseq/dataclass/configs.py``, ``fairseq/models/transformer/transformer_config.py`` and others.
    Needed: from Python 3.11.
    """
    process_class = dataclasses._process_class

    @functools.wraps(process_class)
    def process_fairseq_class(cls, *args, **kwargs):
        cls = process_class(cls, *args, **kwargs)
        if cls.__hash__ is None and any(base.__module__.partition(".")[0] == "fairseq" for base in cls.__mro__):
            cls.__hash__ = object.__hash__
        return cls

    dataclasses._process_class = process_fairseq_class


@before_fairseq
def silence_deprecations():
    """Hide warnings about calls of fairseq that hydra and torch discourage, and a message about a missing package.

    Why: nobody will change these calls. Every command prints about twenty lines on them, which bury the messages that
    matter.
    Mends: ``fairseq/dataclass/utils.py``, ``fairseq_cli/hydra_train.py``, ``fairseq/tasks/fairseq_task.py``,
    ``fairseq/tasks/text_to_speech.py``. Needed: from hydra-core 1.1 and torch 2.4.
    """
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
    warnings.filterwarnings("ignore", category=UserWarning, message=r"\s*'[^']*' is validated against ConfigStore")
    warnings.filterwarnings("ignore", category=UserWarning, message=r"\s*The version_base parameter is not specified")
    warnings.filterwarnings("ignore", category=UserWarning, message="'pin_memory' argument is set as true but no acc")
    warnings.filterwarnings("ignore", category=UserWarning, message="Support for mismatched key_padding_mask")
    warnings.filterwarnings("ignore", category=FutureWarning, module="(lwc_)?fairseq")
    warnings.filterwarnings("ignore", category=FutureWarning, message=r"\W*torch\.jit\.script\W* is (deprecated|not)")


@before_fairseq
def fork_workers():
    """Let workers of ``fairseq-preprocess`` and of data loaders begin as copies of the command, as before Python 3.14.

    Why: they begin as new processes, which import everything again. Only the default changes: a program that has chosen
    a method, or has used the default before the import, keeps it. Needed: on Linux, from Python 3.14.
    """
    choice = multiprocessing.context._default_context
    if sys.version_info >= (3, 14) and choice._default_context.get_start_method() == "forkserver":
        choice._default_context = multiprocessing.get_context("fork")


@before_fairseq
def accept_help_of_hydra():
    """Let options have a help that is no text.

    Why: ``fairseq-hydra-train`` ends with ``badly formed help string``, because an option of hydra 1.3 makes its help
    only when it is printed. Needed: from Python 3.14.
    """
    if sys.version_info < (3, 14):
        return
    check_help = argparse.ArgumentParser._check_help

    def check_text(parser, action):
        if isinstance(action.help, str):
            check_help(parser, action)

    argparse.ArgumentParser._check_help = check_text


@replaces("fairseq.dataclass.utils", "interpret_dc_type")
def read_optional_type(interpret_dc_type, field_type):
    """Understand types such as ``str | None``.

    Why: fairseq looks for "Optional" in the text of a type, which since Python 3.14 is ``str | None`` for
    ``Optional[str]``, too. It does not import (``TypeError: str | None is not callable``). Needed: from Python 3.14,
    and for plugins that write such types.
    """
    others = [kind for kind in typing.get_args(field_type) if kind is not types.NoneType]
    is_optional = types.NoneType in typing.get_args(field_type)
    return others[0] if is_optional else interpret_dc_type(field_type)


class NumpyOfFairseq(types.ModuleType):
    """numpy with the names and the argument that fairseq 0.12.2 uses and numpy 2 no longer has."""

    int, float = int, float
    compat = types.SimpleNamespace(long=int)

    def __getattr__(self, name):
        return getattr(numpy, name)

    @staticmethod
    def percentile(*args, interpolation="linear", **kwargs):
        return numpy.percentile(*args, **{"method": interpolation, **kwargs})


def restore_numpy_names(module):
    """Give a module of fairseq names that numpy has removed.

    Why: ``--num-batch-buckets``, ``--sample-break-mode eos`` of language models, ``--mask-length`` of speech models and
    dynamic CRF models fail with an ``AttributeError`` or a ``TypeError``. Needed: from numpy 2.
    """
    module.np = NumpyOfFairseq("numpy")


for name in ("data.data_utils", "data.token_block_dataset", "data.language_pair_dataset", "modules.dynamic_crf_layer"):
    mends(f"fairseq.{name}")(restore_numpy_names)


@replaces("fairseq.modules.transformer_layer", "TransformerEncoderLayerBase.__init__")
def drop_fused_kernel(init, self, *args, **kwargs):
    """Remove the old fused kernel, and the eight unused weights that it keeps, from the stock encoder layer.

    Why: in generation the layer calls ``torch._transformer_encoder_layer_fwd`` in a form that torch no longer offers
    (``Mask Type should be defined``). The kernel's copies of the weights are parameters that never get a gradient,
    which stops the default distributed training (``Expected to have finished reduction``) and inflates the parameter
    count. Checkpoints that are saved without the copies load in unpatched fairseq, which copies them while it loads.
    Needed: from torch 2.0.
    """
    init(self, *args, **kwargs)
    for name in FUSED_KERNEL_WEIGHTS:
        delattr(self, name)
        setattr(self, name, torch.empty(0))  # which TorchScript wants to compile the kernel's call


@replaces("fairseq.modules.transformer_layer", "TransformerEncoderLayerBase._load_from_state_dict")
def load_without_fused_kernel(load_from_state_dict, self, state_dict, prefix, *args):
    """Load checkpoints with or without the weights that :func:`drop_fused_kernel` removes, and leave the kernel off.

    Why: fairseq's method turns the kernel on. Needed: from torch 2.0.
    """
    for name in FUSED_KERNEL_WEIGHTS:
        state_dict.pop(prefix + name, None)
    nn.Module._load_from_state_dict(self, state_dict, prefix, *args)
