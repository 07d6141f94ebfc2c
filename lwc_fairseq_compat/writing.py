"""Writing checkpoints: patches that write them as a whole or not at all, and only what can be read again."""

import contextlib
import functools
import io
import os
import pickle
import shutil

import torch

from .checkpoints import refused_class
from .errors import UserError
from .files import whole_file
from .hooks import mends


@mends("fairseq.checkpoint_utils", "_torch_persistent_save")
def save_once(torch_persistent_save):
    """Try once to write a checkpoint.

    Why: fairseq tries three times into the same open file. If an attempt fails halfway and the next one does not, the
    file holds parts of both, is renamed to a checkpoint and cannot be read. Needed: always.
    """

    @functools.wraps(torch_persistent_save)
    def torch_save(obj, file):
        torch.save(obj, file)

    return torch_save


@mends("fairseq.checkpoint_utils", "torch_persistent_save")
def write_readable_checkpoint(save):
    """Replace a checkpoint only by one that can be read again. Otherwise say why, and leave nothing half-written.

    A checkpoint that safe reading refuses gets another name.
    Why: fairseq first writes to a name that ends in ``.tmp``, and leaves that file where it fails. What the criterion,
    the task and the model of a plugin put into a checkpoint may be refused when it is read. Needed: always.
    """
    from fairseq.utils import apply_to_sample

    @functools.wraps(save)
    def save_or_say_why(obj, filename, *args, **kwargs):
        path = filename
        try:
            state = apply_to_sample(lambda tensor: tensor, obj)  # makes dictionaries of all kinds plain ones
            # The values of tensors are never refused, and may be large.
            refused = refused_when_read(apply_to_sample(lambda tensor: tensor.new_empty(0), state))
            if refused:
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

    return save_or_say_why


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


@mends("fairseq.file_io")
def copy_whole_files(module):
    """Copy a file as a whole or not at all.

    Why: fairseq writes a checkpoint with care and then copies it over ``checkpoint_last.pt``. Training that is killed
    during the copy leaves half a file there, from which it cannot resume.
    Mends: ``PathManager.copy``. Needed: unless iopath is installed, which has a copy of its own.
    """
    if module.IOPathManager:
        return

    def copy(src_path, dst_path, overwrite=False):
        try:
            with whole_file(dst_path) as making:
                shutil.copyfile(src_path, making)
        except OSError as error:
            raise unwritten_checkpoint(dst_path, error) from error
        return True

    module.PathManager.copy = staticmethod(copy)


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
