"""Checkpoints: patches that read them safely, verify their checksums, and name them in messages."""

import argparse
import codecs
import collections
import datetime
import decimal
import fractions
import functools
import os
import pathlib
import pickle
import re
import typing
import zipfile

import numpy
import omegaconf
import torch
from omegaconf import base, nodes

from .errors import UserError
from .hooks import before_fairseq, mends

DTYPES = {type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"}
"""The types of numpy's numbers, truth values, strings and times, but not of its arrays of other objects."""


@before_fairseq
def trust_checkpoint_classes():
    """Let ``torch.load`` read fairseq's checkpoints in its weights-only mode.

    Why: since torch 2.6 ``torch.load`` builds only objects of classes that are named as harmless. fairseq writes a
    ``Namespace`` (models registered without a dataclass), with ``--eval-bleu`` numpy arrays of counts, and whatever a
    criterion logs, such as numbers of numpy. None of these runs code when it is built, so the safe mode stays on.
    Mends: ``fairseq/checkpoint_utils.py``. Needed: from torch 2.6.
    """
    reconstruct = numpy.array(0).__reduce__()[0]
    make_scalar = numpy.float64(0).__reduce__()[0]
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            codecs.encode,
            *(numpy.ndarray, numpy.dtype, *DTYPES),
            # numpy 2 renamed the module of these functions: checkpoints hold either name
            *((reconstruct, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
            *((make_scalar, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
            *(int, float, bool, str, list, dict, tuple, frozenset),
            *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
            *(decimal.Decimal, fractions.Fraction),
            *(pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath),
        ]
    )


@mends("fairseq.distributed.utils", "_broadcast_object_slow")
def broadcast_configurations(broadcast):
    """Let the ranks of a job receive the configuration that rank 0 sends on resume.

    Why: the receivers call ``torch.load``, which is weights-only since torch 2.6, on a checkpoint whose ``cfg`` is an
    omegaconf ``DictConfig``. The classes are allowed only during this call, whose bytes come from the job's own rank 0.
    Needed: from torch 2.6.
    """
    from fairseq.distributed.utils import _TensorPlaceholder

    classes = [
        omegaconf.DictConfig,
        omegaconf.ListConfig,
        base.ContainerMetadata,
        base.Metadata,
        *(value for value in vars(nodes).values() if isinstance(value, type) and issubclass(value, base.Node)),
        collections.defaultdict,
        _TensorPlaceholder,
        typing.Any,
        *(dict, list, tuple, int, float, str, bool),
    ]

    @functools.wraps(broadcast)
    def broadcast_object_slow(*args, **kwargs):
        with torch.serialization.safe_globals(classes):
            return broadcast(*args, **kwargs)

    return broadcast_object_slow


@mends("fairseq.checkpoint_utils", "load_checkpoint_to_cpu")
def name_unreadable_checkpoint(load):
    """Name the checkpoint that cannot be read, whatever the cause, and reject a checkpoint that has changed.

    Why: PyTorch stores checksums in a checkpoint, but does not compare them when it reads. Needed: always.
    """

    @functools.wraps(load)
    def load_named_checkpoint_to_cpu(path, *args, **kwargs):
        try:
            check_sums(path)
            state = load(path, *args, **kwargs)
            check_contents(state)
        except (FileNotFoundError, MemoryError):
            raise
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
        except IsADirectoryError as error:
            name = os.path.join(path, "checkpoint_best.pt")
            raise UserError(f"{path} is a folder: give a checkpoint in it, such as {name}") from error
        except Exception as error:
            raise unread_checkpoint(path, error) from error
        return state

    return load_named_checkpoint_to_cpu


def unread_checkpoint(path, error):
    """Return the error that a user sees when a checkpoint cannot be read."""
    if refused := refused_class(error):
        return UserError(
            f"cannot read checkpoint {path}: it holds {refused}, which is not read because it might run code. If you "
            f"trust it, allow it in the plugin of --user-dir: torch.serialization.add_safe_globals([{refused}])"
        )
    reason = (str(error).splitlines() or [""])[0].partition(". ")[0]  # then torch advises to read it unsafely
    return UserError(
        f"cannot read checkpoint {path} ({type(error).__name__}: {reason[:200]}): it is truncated or damaged, or no "
        "checkpoint of fairseq. Take another one, such as checkpoint_best.pt or an earlier epoch's"
    )


REFUSALS = (r"GLOBAL (\S+) ", r"but got <class '(\S+)'>$", r"unrecognized function <(?:class|function) '?(\S+?)'?[ >]")
"""How ``torch.load`` names what it does not build."""


def refused_class(error):
    """Return the name of the class or function that safe reading refused, or None if it failed for another reason."""
    if not isinstance(error, pickle.UnpicklingError):
        return None
    matches = (re.search(pattern, str(error), re.MULTILINE) for pattern in REFUSALS)
    return next((match[1] for match in matches if match), None)


def check_sums(path):
    """Compare the parts of a checkpoint with its checksums. Checkpoints of PyTorch before 1.6 have no checksums.

    Raises:
        zipfile.BadZipFile: a part differs from its checksum.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
        if changed is not None:
            raise zipfile.BadZipFile(f"{changed} is not what was written")


def check_contents(state):
    """Check that the content of a file is a fairseq checkpoint.

    Raises:
        TypeError: the content is something else.
    """
    check_weights(state)
    cfg = state.get("cfg")
    if isinstance(cfg, omegaconf.DictConfig):
        if not all(isinstance(cfg.get(part), (omegaconf.DictConfig, argparse.Namespace)) for part in ("model", "task")):
            raise TypeError("its 'cfg' does not describe a model and a task")
    elif cfg is not None or not isinstance(state.get("args"), argparse.Namespace):
        raise TypeError("neither its 'cfg' nor its 'args' are options of fairseq")
    history = state.get("optimizer_history")
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise TypeError("its 'optimizer_history' is not a list of dictionaries")


def check_weights(state):
    """Check that the content of a file has weights, as a fairseq checkpoint.

    Raises:
        TypeError: it has none.
    """
    if not isinstance(state, dict):
        raise TypeError(f"it holds a {type(state).__name__}, not a dictionary")
    weights = state.get("model")
    tensors = list(weights.values()) if isinstance(weights, dict) else [None]
    if not all(isinstance(value, torch.Tensor) and not value.is_complex() for value in tensors):
        raise TypeError("its 'model' is not a dictionary of real tensors")


@mends("fairseq.models.fairseq_model", "BaseFairseqModel.load_state_dict")
def name_misfit_checkpoint(load_state_dict):
    """Say that a checkpoint belongs to another model or dictionary.

    Why: PyTorch lists every weight that does not fit. Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_fitting_state_dict(self, *args, **kwargs):
        try:
            return load_state_dict(self, *args, **kwargs)
        except RuntimeError as error:
            reason = (str(error).splitlines()[1:] or [str(error)])[0].strip()
            raise UserError(
                f"the checkpoint does not fit this {type(self).__name__}, to begin with: {reason[:200]} ... "
                "Use the data folder and the model options that it was trained with"
            ) from error

    return load_fitting_state_dict
