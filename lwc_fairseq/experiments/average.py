"""The mean of several checkpoints' weights."""

import re
from pathlib import Path

import torch
from fairseq.checkpoint_utils import torch_persistent_save

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.checkpoints import check_sums


def newest_epochs(folder: Path, last: int) -> list[Path]:
    """Return the checkpoints of the last epochs in a folder (`checkpoint12.pt` and so on), oldest first.

    Args:
        last: the number of epochs.

    Raises:
        UserError: the folder has fewer checkpoints.
    """
    found = {}
    for path in folder.glob("checkpoint*.pt"):
        if match := re.fullmatch(r"checkpoint(\d+)\.pt", path.name):
            found[int(match[1])] = path
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    if len(found) < last or last < 1:
        raise UserError(
            f"--last {last}: {folder} has {len(found)} checkpoints of epochs (checkpoint1.pt and so on). fairseq-train "
            f"keeps them without --no-epoch-checkpoints, or with --keep-last-epochs {last}"
        )
    return [found[epoch] for epoch in sorted(found)[-last:]]


def average_checkpoints(paths: list[Path], out: Path) -> None:
    """Write a checkpoint whose weights are the mean of those in `paths`. Everything else comes from the last one.

    Sums are computed in double precision. Integers are counters, so they come from the last checkpoint. A weight with
    several names is written once, as in fairseq's checkpoints.

    Raises:
        UserError: the checkpoints have different weights, or the mean cannot be written.
    """
    states = [read(path) for path in paths]
    *_, last = states
    shapes = {name: value.shape for name, value in last["model"].items()}
    for path, state in zip(paths, states, strict=True):
        if {name: value.shape for name, value in state["model"].items()} != shapes:
            raise UserError(f"{path}: its weights are not those of {paths[-1]}: take checkpoints of one training run")
    means = {}
    for name, value in last["model"].items():
        if value.is_floating_point():
            place = value.data_ptr(), value.shape
            if place not in means:
                total = sum(state["model"][name].double() for state in states)
                means[place] = (total / len(states)).to(value.dtype)
            last["model"][name] = means[place]
    last["last_optimizer_state"] = None
    torch_persistent_save(last, str(out))


def read(path: Path) -> dict:
    """Read a checkpoint without changes. (fairseq's own function converts the configuration into objects that cannot be
    saved.)

    Raises:
        UserError: the file is not a checkpoint.
    """
    try:
        check_sums(path)
        state = torch.load(path, map_location="cpu")
        state["model"].items()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except Exception as error:
        raise UserError(f"{path}: not a fairseq checkpoint, or an incomplete one") from error
    return state
