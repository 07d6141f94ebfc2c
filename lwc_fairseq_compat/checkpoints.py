"""Checkpoints: patches that read them safely, verify their checksums, write them as a whole or not at all, and name
them in messages."""

import argparse
import ast
import codecs
import collections
import contextlib
import datetime
import decimal
import fractions
import io
import operator
import os
import pathlib
import pickle
import re
import shutil
import typing
import zipfile

import numpy
import omegaconf
import torch
from omegaconf import base, nodes

from .errors import UserError
from .files import whole_file
from .hooks import before_fairseq, mends, replaces


@before_fairseq
def trust_checkpoint_classes():
    """Let ``torch.load`` read fairseq's checkpoints in its weights-only mode.

    Why: since torch 2.6 ``torch.load`` builds only objects of classes that are named as harmless. fairseq writes a
    ``Namespace`` (models registered without a dataclass), with ``--eval-bleu`` numpy arrays of counts, and whatever a
    criterion logs, such as numbers of numpy. None of these runs code when it is built, so the safe mode stays on.
    Mends: ``fairseq/checkpoint_utils.py``. Needed: from torch 2.6.
    """
    # numpy 2 renamed the module of these two functions: checkpoints hold either name
    makers = [value.__reduce__()[0] for value in (numpy.array(0), numpy.float64(0))]
    torch.serialization.add_safe_globals(
        [
            *(argparse.Namespace, codecs.encode, numpy.ndarray, numpy.dtype),
            *((make, f"numpy.{core}.multiarray.{make.__name__}") for make in makers for core in ("core", "_core")),
            # numbers, truth values, strings and times, but not arrays of other objects
            *{type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"},
            *(int, float, bool, str, list, dict, tuple, frozenset, decimal.Decimal, fractions.Fraction),
            *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
            *(pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath, pathlib.PureWindowsPath),
        ]
    )


@mends("fairseq.data.dictionary", "Dictionary")
def trust_dictionaries(dictionary):
    """Let ``torch.load`` read the dictionaries in the checkpoints of speech models.

    Why: as for :func:`trust_checkpoint_classes`. The tasks of wav2vec 2.0 (``audio_finetuning``) and of HuBERT keep
    their dictionaries in the checkpoint. Building one runs no code. Needed: from torch 2.6.
    """
    torch.serialization.add_safe_globals([dictionary])
    return dictionary


def read_options_as_data(module):
    """Let a module read the values of options as data: numbers, texts, tuples, lists and dictionaries, and sums and
    products of them, such as ``[(512, 3)] * 20``.

    Why: fairseq calls ``eval``, so the options in a checkpoint could run any code when its model is built. Needed:
    always.
    """
    module.eval = value_of


for name in (
    *("utils", "criterions.ctc", "data.codedataset", "data.audio.raw_audio_dataset"),
    *(f"optim.{name}" for name in ("adam", "adamax", "adafactor", "cpu_adam", "fused_lamb")),
    *(f"models.{name}" for name in ("fconv", "fconv_lm", "fconv_self_att", "lightconv_lm", "transformer_lm")),
    *(f"models.{name}" for name in ("hubert.hubert", "wav2vec.wav2vec", "wav2vec.wav2vec2")),
    "models.speech_to_text.s2t_wav_transformer",
):
    mends(f"fairseq.{name}")(read_options_as_data)

LONGEST_LIST = 10_000
"""How many items a list or a text may have that is a sum or a product."""


def value_of(text):
    """Return the value of an option. Raises UserError if it is not data."""
    if not isinstance(text, str):
        raise TypeError("an option is a text")  # fairseq expects this of eval
    try:
        return evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise UserError(
            f"{text[:100]}: an option of the model or of the command cannot have this value: give numbers, texts, "
            "tuples or lists, such as (0.9, 0.98) or [(512, 3)] * 20"
        ) from error


def evaluate(node):
    """Return the value of an expression. Raises ValueError if it is not data."""
    if isinstance(node, ast.List):
        return [evaluate(item) for item in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(evaluate(item) for item in node.elts)
    if not isinstance(node, ast.BinOp):
        return ast.literal_eval(node)
    left, right = evaluate(node.left), evaluate(node.right)
    sizes = [len(value) if isinstance(value, list | tuple | str | bytes) else value for value in (left, right)]
    combine = {ast.Add: operator.add, ast.Mult: operator.mul}.get(type(node.op))
    if combine is None or (sizes != [left, right] and combine(*sizes) > LONGEST_LIST):
        raise ValueError("neither a sum nor a product, or a long list")
    return combine(left, right)


@replaces("fairseq.distributed.utils", "_broadcast_object_slow")
def broadcast_configurations(broadcast, *args, **kwargs):
    """Let the ranks of a job receive the configuration that rank 0 sends on resume.

    Why: the receivers call ``torch.load``, which is weights-only since torch 2.6, on a checkpoint whose ``cfg`` is an
    omegaconf ``DictConfig``. The patch allows these classes only during this call, which reads bytes from rank 0
    of the same job. They must not include classes that are always allowed: the end of the call forbids them all.
    Needed: from torch 2.6.
    """
    from fairseq.distributed.utils import _TensorPlaceholder

    classes = [
        *(omegaconf.DictConfig, omegaconf.ListConfig, base.ContainerMetadata, base.Metadata),
        *(value for value in vars(nodes).values() if isinstance(value, type) and issubclass(value, base.Node)),
        *(collections.defaultdict, _TensorPlaceholder, typing.Any),
    ]
    with torch.serialization.safe_globals(classes):
        return broadcast(*args, **kwargs)


@replaces("fairseq.checkpoint_utils", "load_checkpoint_to_cpu")
def name_unreadable_checkpoint(load, path, *args, **kwargs):
    """Name the checkpoint that cannot be read, whatever the cause, and reject a checkpoint that has changed.

    Why: PyTorch stores checksums in a checkpoint, but does not compare them when it reads. Needed: always.
    """
    with named_in_errors(path):
        check_sums(path)
        state = load(path, *args, **kwargs)
        check_contents(state)
    return state


@contextlib.contextmanager
def named_in_errors(path):
    """Name the checkpoint that is read in the ``UserError`` that follows any error but a missing file or memory."""
    try:
        yield
    except (FileNotFoundError, MemoryError):
        raise
    except PermissionError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except IsADirectoryError as error:
        name = os.path.join(path, "checkpoint_best.pt")
        raise UserError(f"{path} is a folder: give a checkpoint in it, such as {name}") from error
    except Exception as error:
        raise unread_checkpoint(path, error) from error


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


REFUSAL = r"GLOBAL (\S+) |but got <class '(\S+)'>$|unrecognized function <(?:class|function) '?(\S+?)'?[ >]"
"""How ``torch.load`` names what it does not build."""


def refused_class(error):
    """Return the name of the class or function that safe reading refused, or None if it failed for another reason."""
    match = re.search(REFUSAL, str(error), re.MULTILINE) if isinstance(error, pickle.UnpicklingError) else None
    return match and match[match.lastindex]


def check_sums(path):
    """Raises zipfile.BadZipFile if a part of a checkpoint differs from its checksum. PyTorch before 1.6 wrote none."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
        if changed is not None:
            raise zipfile.BadZipFile(f"{changed} is not what was written")


def check_contents(state):
    """Raises TypeError if `state` is not the content of a checkpoint. fairseq has already converted older forms."""
    check_weights(state)
    cfg, history = state.get("cfg"), state.get("optimizer_history")
    if not isinstance(cfg, omegaconf.DictConfig):
        raise TypeError("neither its 'cfg' nor its 'args' are options of fairseq")
    if not all(isinstance(cfg.get(part), (omegaconf.DictConfig, argparse.Namespace)) for part in ("model", "task")):
        raise TypeError("its 'cfg' does not describe a model and a task")
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise TypeError("its 'optimizer_history' is not a list of dictionaries")


def check_weights(state):
    """Raises TypeError if a file does not hold weights as a checkpoint of fairseq does."""
    if not isinstance(state, dict):
        raise TypeError(f"it holds a {type(state).__name__}, not a dictionary")
    weights = state.get("model")
    tensors = list(weights.values()) if isinstance(weights, dict) else [None]
    tensors = [value for value in tensors if not isinstance(value, dict)]  # in which data2vec keeps its average
    if not all(isinstance(value, torch.Tensor) and not value.is_complex() for value in tensors):
        raise TypeError("its 'model' is not a dictionary of real tensors")


@replaces("fairseq.models.fairseq_model", "BaseFairseqModel.load_state_dict")
def name_misfit_checkpoint(load_state_dict, self, *args, **kwargs):
    """Say that a checkpoint belongs to another model or dictionary.

    Why: PyTorch lists every weight that does not fit. Needed: always.
    """
    try:
        return load_state_dict(self, *args, **kwargs)
    except RuntimeError as error:
        reason = (str(error).splitlines()[1:] or [str(error)])[0].strip()
        raise UserError(
            f"the checkpoint does not fit this {type(self).__name__}, to begin with: {reason[:200]} ... "
            "Use the data folder and the model options that it was trained with"
        ) from error


@mends("fairseq.checkpoint_utils", "_torch_persistent_save")
def save_once(_):
    """Try once to write a checkpoint.

    Why: fairseq tries three times into the same open file. If an attempt fails halfway and the next one does not, the
    file holds parts of both, is renamed to a checkpoint and cannot be read. Needed: always.
    """
    return torch.save


@replaces("fairseq.checkpoint_utils", "torch_persistent_save")
def write_readable_checkpoint(save, obj, filename, *args, **kwargs):
    """Replace a checkpoint only by one that can be read again. Otherwise say why, and leave nothing half-written.

    Why: fairseq first writes to a name that ends in ``.tmp``, and leaves that file where it fails. Reading may
    refuse what the criterion, the task and the model of a plugin put into a checkpoint. Needed: always.
    """
    from fairseq.utils import apply_to_sample

    path = filename
    try:
        state = apply_to_sample(lambda tensor: tensor, obj)  # makes dictionaries of all kinds plain ones
        # The values of tensors are never refused, and may be large.
        refused = refused_when_read(apply_to_sample(lambda tensor: tensor.new_empty(0), state))
        if refused:  # an unreadable checkpoint replaces none
            path = f"{filename}.unreadable"
        save(state, path, *args, **kwargs)
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            os.remove(f"{path}.tmp")
        raise unwritten_checkpoint(path, error) from error
    except (pickle.PicklingError, AttributeError, TypeError) as error:  # what pickle raises for a lambda or a file
        raise UserError(
            f"cannot write checkpoint {filename}: it would hold an object that cannot be saved ({error}). Keep it "
            "out of what the criterion logs, and of the state of the task, the model and the optimizer"
        ) from error
    if refused:
        raise UserError(
            f"the checkpoint holds {refused}, which safe reading refuses, so it is {path} and replaces none. Log "
            "numbers instead; or, if the class is harmless, allow it in the plugin of --user-dir, "
            f"torch.serialization.add_safe_globals([{refused}]), and go on with --restore-file {path}"
        )


def refused_when_read(state):
    """Return the name of the class in `state` that safe reading would refuse, or None."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    try:
        torch.load(file)
    except pickle.UnpicklingError as error:
        return refused_class(error) or "an object"
    return None


@replaces("fairseq.file_io", "PathManager.copy")
def copy_whole_files(copy, src_path, dst_path, overwrite=False):
    """Copy a file as a whole or not at all.

    Why: fairseq writes a checkpoint with care and then copies it over ``checkpoint_last.pt``. Training that is killed
    during the copy leaves half a file there, from which it cannot resume.
    Needed: unless iopath is installed, which has a copy of its own.
    """
    from fairseq.file_io import IOPathManager

    if IOPathManager:
        return copy(src_path, dst_path, overwrite)
    try:
        with whole_file(dst_path) as making:
            copy(src_path, making)
    except OSError as error:
        raise unwritten_checkpoint(dst_path, error) from error
    return True


def unwritten_checkpoint(path, error):
    """Return the error that a user sees when a checkpoint cannot be written."""
    reason = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return UserError(
            f"cannot write checkpoint {path} ({reason}; the folder {folder} is gone): give the same command again, "
            "which makes it"
        )
    free = shutil.disk_usage(folder).free // 2**20
    return UserError(
        f"cannot write checkpoint {path} ({reason}; {free} MiB are free there). Those written before are whole: make "
        "room and give the same command again"
    )
