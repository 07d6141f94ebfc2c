"""`lwc-fairseq average`: the mean of several checkpoints' weights."""

import argparse
import re
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import make_place
from .arguments import positive


def add_average(commands) -> None:
    average = commands.add_parser(
        "average",
        help="average checkpoints",
        description="Write a checkpoint whose weights are the mean of several checkpoints of one training run.",
    )
    average.add_argument("inputs", nargs="+", type=Path, metavar="PATH", help="checkpoints or, with --last, a folder")
    average.add_argument(
        "--last", type=positive, metavar="N", help="average the checkpoints of the last N epochs in the folder"
    )
    average.add_argument("--out", required=True, type=Path, metavar="FILE", help="the checkpoint to write")
    average.set_defaults(call=average_command)


def average_command(args: argparse.Namespace) -> int:
    paths = args.inputs
    if args.last:
        if len(paths) != 1:
            raise UserError(f"--last {args.last}: give one folder, not {len(paths)} paths")
        paths = newest_epochs(paths[0], args.last)
    make_place(args.out, inputs=paths)
    average_checkpoints(paths, args.out)
    print(f"wrote {args.out}, the mean of {', '.join(map(str, paths))}")
    return 0


def newest_epochs(folder: Path, last: int) -> list[Path]:
    """Return the checkpoints of the last epochs in a folder (`checkpoint12.pt` and so on), oldest first.

    Args:
        last: the number of epochs.

    Raises:
        UserError: the folder has fewer checkpoints.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    pattern = re.compile(r"checkpoint(\d+)\.pt")
    epochs = {int(match[1]): path for path in folder.iterdir() if (match := pattern.fullmatch(path.name))}
    if len(epochs) < last:
        raise UserError(
            f"--last {last}: {folder} has {len(epochs)} checkpoints of epochs (checkpoint1.pt and so on). "
            f"fairseq-train keeps them without --no-epoch-checkpoints, or with --keep-last-epochs {last}"
        )
    return [epochs[epoch] for epoch in sorted(epochs)[-last:]]


def average_checkpoints(paths: list[Path], out: Path) -> None:
    """Write a checkpoint whose weights are the mean of those in `paths`. Everything else comes from the last one. The
    state of the optimizer is left out.

    Sums are computed in double precision. Integers are counters, so they come from the last checkpoint. A weight with
    several names is written once, as in fairseq's checkpoints. Only one checkpoint is in memory at a time.

    Raises:
        UserError: the checkpoints have different weights, or the mean cannot be written.
    """
    from fairseq.checkpoint_utils import torch_persistent_save

    from lwc_fairseq_compat.dictionaries import check_same_words

    *others, newest = paths
    last = read(newest)
    last["last_optimizer_state"] = None
    weights = last["model"]
    shapes = {name: value.shape for name, value in weights.items()}
    first_names: dict[tuple, str] = {}  # of the weight at a place in memory
    names = {
        name: first_names.setdefault((value.data_ptr(), value.shape), name)
        for name, value in weights.items()
        if value.is_floating_point()
    }
    dtypes = {name: weights[name].dtype for name in names}
    sums = {name: weights[name].double() for name in first_names.values()}
    weights.update(dict.fromkeys(names))  # frees what is in the sums
    for path in others:
        state = read(path)
        check_same_words(newest, last, path, state)
        summand = state.pop("model")
        if {name: value.shape for name, value in summand.items()} != shapes:
            raise UserError(f"{path}: its weights are not those of {newest}: take checkpoints of one training run")
        for name, total in sums.items():
            total += summand[name]
        del state, summand
    means = {name: (sums.pop(name) / len(paths)).to(dtypes[name]) for name in list(sums)}
    weights.update({name: means[first] for name, first in names.items()})
    torch_persistent_save(last, str(out))


def read(path: Path) -> dict:
    """Read a checkpoint without changes. (fairseq's own function converts the configuration into objects that cannot be
    saved.)

    Raises:
        UserError: the file is not a checkpoint.
    """
    import torch

    from lwc_fairseq_compat.checkpoints import check_sums, check_weights, named_in_errors

    from ..packs import is_pack

    if is_pack(path):
        raise UserError(f"{path}: a pack, which is for translation: give a checkpoint")
    try:
        with named_in_errors(path):
            check_sums(path)
            state = torch.load(path, map_location="cpu")
            check_weights(state)
    except FileNotFoundError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    return state
