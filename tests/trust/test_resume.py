"""Training that stops and resumes ends with the same bits as training that never stopped."""

from pathlib import Path

import pytest
import torch

from conftest import (
    EACH_FAMILY,
    FAMILIES,
    LONG,
    TASK,
    TINY_TRAINING,
    TWO_PROCESSES,
    assert_resumed,
    assert_same_end,
    run,
)

DROPOUT = ("--dropout", "0.2")
# Batches of 20: an epoch has ten, or five updates of two. Four updates end in an epoch's middle, five with it.
MIDDLE, END = 4, 5


def train(data, out, family: str, updates: int, *flags, processes: int = 1, batches: int = 2):
    size = ("--batch-size", "20", "--required-batch-size-multiple", "1", "--update-freq", batches)
    command = (
        "fairseq-train",
        data,
        *TASK,
        *TINY_TRAINING,
        *FAMILIES[family],
        *DROPOUT,
        *size,
        "--save-dir",
        out,
        *flags,
    )
    if processes == 2:
        return run(*TWO_PROCESSES, *command, "--max-update", updates, OMP_NUM_THREADS="1")
    return run(*command, "--max-update", updates)


def assert_same(one: Path, other: Path) -> None:
    """Weights, optimizer, position in the data, the best loss: everything except times and paths."""
    assert_same_end(one, other)
    saved, expected = (torch.load(folder / "checkpoint_last.pt")["extra_state"] for folder in (one, other))
    for name in ("train_iterator", "val_loss", "best"):
        assert saved[name] == expected[name]


@pytest.mark.parametrize(
    "stop",
    [pytest.param(MIDDLE, id="in the middle of an epoch"), pytest.param(END, id="at the end of an epoch", marks=LONG)],
)
@EACH_FAMILY
def test_resuming_changes_nothing(tiny_data, tmp_path, family, stop):
    train(tiny_data, tmp_path / "undisturbed", family, 2 * stop)
    train(tiny_data, tmp_path / "resumed", family, stop)
    assert_resumed(train(tiny_data, tmp_path / "resumed", family, 2 * stop), stop)
    assert_same(tmp_path / "resumed", tmp_path / "undisturbed")


@LONG
@EACH_FAMILY
def test_resuming_two_processes_changes_nothing(tiny_data, tmp_path, family):
    for out, updates in (("undisturbed", 6), ("resumed", 3), ("resumed", 6)):
        done = train(tiny_data, tmp_path / out, family, updates, processes=2, batches=1)
    assert_resumed(done, 3)
    assert_same(tmp_path / "resumed", tmp_path / "undisturbed")


def test_another_seed_ends_elsewhere(tiny_data, tmp_path):
    """So that the comparisons above can fail."""
    train(tiny_data, tmp_path / "one", "lwc", 3)
    train(tiny_data, tmp_path / "other", "lwc", 3, "--seed", "2")
    with pytest.raises(AssertionError):
        assert_same(tmp_path / "one", tmp_path / "other")
