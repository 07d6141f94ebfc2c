"""Training loses no update that it made: what it saves, under which names, and where the same command goes on."""

import math
import shutil
from textwrap import dedent

import pytest
from fairseq.data import ListDataset
from fairseq.data.iterators import CountingIterator, EpochBatchIterator, GroupedIterator

from conftest import (
    FAMILIES,
    LONG,
    TASK,
    TINY_TRAINING,
    assert_resumed,
    assert_same_end,
    refused,
    run,
    run_python,
    saved_updates,
)

# 200 pairs in batches of 100: an epoch has two updates.
TRAINING = [flag for flag in TINY_TRAINING if flag != "--no-epoch-checkpoints"]
SIZE = ("--max-tokens", "9999", "--batch-size", "100", "--required-batch-size-multiple", "1")
PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-shrink", "0.1", "--maximize-best-checkpoint-metric")
BAD_EPOCHS = ("--maximize-best-checkpoint-metric",)  # of the loss: the first epoch is the best


def train(data, out, *flags, ends=run):
    flags = (*TASK, *TRAINING, *FAMILIES["lwc"], *SIZE, "--save-dir", out, *flags)
    return ends("fairseq-train", data, *flags)


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


ENDS = {
    "max_epoch": (8, "--save-interval", "3", "--max-epoch", "4"),
    "max_epoch before the first save": (4, "--save-interval", "5", "--max-epoch", "2"),
    "max_update": (3, "--save-interval", "5", "--max-update", "3"),
    "max_update with update_freq": (3, "--update-freq", "2", "--max-update", "3", "--batch-size", "30"),
    "stop_min_lr": (4, "--save-interval", "5", "--force-anneal", "1", "--lr-shrink", "0.1", "--stop-min-lr", "1e-4"),
    "stop_min_lr after a save": (4, *PLATEAU, "--stop-min-lr", "1e-3"),
    "stop_time_hours": (1, "--stop-time-hours", "1e-9"),
    "patience": (6, "--save-interval", "5", "--patience", "2", *BAD_EPOCHS),
    "without the optimizer": (3, "--no-save-optimizer-state", "--max-update", "3"),
}
SHORT_ENDS = ("max_epoch before the first save", "stop_min_lr")


@pytest.mark.parametrize("end", [pytest.param(end, marks=() if end in SHORT_ENDS else LONG) for end in ENDS])
def test_the_end_is_saved_and_the_same_command_makes_no_update(tiny_data, tmp_path, end):
    expected, *flags = ENDS[end]
    train(tiny_data, tmp_path, *flags)
    last = tmp_path / "checkpoint_last.pt"
    assert saved_updates(last) == expected
    saved = last.read_bytes()
    assert "done training" in train(tiny_data, tmp_path, *flags).stderr
    assert last.read_bytes() == saved


def test_it_does_not_save_if_it_must_not(tiny_data, tmp_path):
    train(tiny_data, tmp_path / "out", "--save-interval", "3", "--max-epoch", "2", "--no-save")
    assert not names(tmp_path / "out")


def test_each_name_that_is_asked_for(tiny_data, tmp_path):
    """With a learning rate of 0, all epochs have one score."""
    flags = ("--save-interval", "3", "--max-epoch", "4", "--lr", "0", "--no-last-checkpoints")
    train(tiny_data, tmp_path, *flags)
    assert names(tmp_path) == {"checkpoint3.pt", "checkpoint_best.pt"}
    flags = ("--save-interval-updates", "2", "--keep-interval-updates", "2", "--keep-best-checkpoints", "3")
    train(tiny_data, tmp_path / "all", *flags, "--keep-last-epochs", "1", "--max-epoch", "5", "--lr", "0")
    best = {name for name in names(tmp_path / "all") if name.startswith("checkpoint.best_loss_")}
    assert len(best) == 3
    others = {"checkpoint_4_8.pt", "checkpoint_5_10.pt", "checkpoint5.pt", "checkpoint_best.pt", "checkpoint_last.pt"}
    assert names(tmp_path / "all") == best | others


@pytest.mark.parametrize(
    ("sign", "expected"), [pytest.param((), [8, 10, 12], marks=LONG), (BAD_EPOCHS, [2, 4, 6])], ids=["falls", "rises"]
)
def test_the_best_checkpoints_are_the_best(tiny_data, tmp_path, sign, expected):
    """The loss falls in each epoch, whether that counts as better or worse."""
    train(tiny_data, tmp_path, "--keep-best-checkpoints", "3", "--no-epoch-checkpoints", "--max-epoch", "6", *sign)
    assert sorted(saved_updates(path) for path in tmp_path.glob("checkpoint.best_*")) == expected
    assert saved_updates(tmp_path / "checkpoint_best.pt") == (2 if sign else 12)


@LONG
def test_what_is_just_written_is_not_removed(tiny_data, tmp_path):
    """The folder has the epochs of an earlier training."""
    (tmp_path / "checkpoint12.pt").write_text("earlier")
    train(tiny_data, tmp_path, "--keep-last-epochs", "1", "--max-epoch", "2")
    assert "checkpoint2.pt" in names(tmp_path)


@LONG
@pytest.mark.parametrize(
    "schedule",
    [
        ("--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", "1", "--lr-shrink", "0.5", *BAD_EPOCHS),
        ("--lr", "0.001,0.002,0.003,0.004,0.005"),
    ],
    ids=["reduce_lr_on_plateau", "fixed"],
)
def test_a_schedule_of_epochs_goes_on_when_training_resumes(tiny_data, tmp_path, schedule):
    train(tiny_data, tmp_path / "whole", *schedule, "--max-update", "9")
    train(tiny_data, tmp_path / "resumed", *schedule, "--max-update", "4")
    for stopped, last in ((4, 7), (7, 9)):
        assert_resumed(train(tiny_data, tmp_path / "resumed", *schedule, "--max-update", str(last)), stopped)
    assert_same_end(tmp_path / "resumed", tmp_path / "whole")


@pytest.fixture(scope="module")
def within_epoch(tiny_data, tmp_path_factory):
    """A training that has made five of the seven updates of an epoch."""
    folder = tmp_path_factory.mktemp("within_epoch")
    train(tiny_data, folder, "--batch-size", "30", "--max-update", "5", *BAD_EPOCHS)
    return folder


SIZES = {
    "larger batches": ("--batch-size", "200"),
    "smaller batches": ("--batch-size", "20"),
    "more batches an update": ("--update-freq", "4"),
    "without the last batch": ("--skip-remainder-batch",),
    "fewer sentences": ("--max-source-positions", "2", "--skip-invalid-size-inputs-valid-test"),
}


SHORT_SIZES = ("larger batches", "more batches an update")


@pytest.mark.parametrize("size", [pytest.param(size, marks=() if size in SHORT_SIZES else LONG) for size in SIZES])
def test_resuming_within_an_epoch_with_other_batches(tiny_data, within_epoch, tmp_path, size):
    shutil.copytree(within_epoch, tmp_path / "out")
    done = train(tiny_data, tmp_path / "out", "--batch-size", "30", *SIZES[size], "--max-update", "8")
    assert saved_updates(tmp_path / "out" / "checkpoint_last.pt") == 8
    assert ("were done: going on with epoch 2" in done.stderr) == (size in ("larger batches", "fewer sentences"))


@LONG
def test_an_epoch_that_is_skipped_ends_its_folder_of_data(tiny_data, within_epoch, tmp_path):
    shutil.copytree(tiny_data, tmp_path / "two")
    shutil.copytree(within_epoch, tmp_path / "out")
    changed = ("--batch-size", "200", "--reset-lr-scheduler", "--max-update", "6")
    done = train(f"{tiny_data}:{tmp_path / 'two'}", tmp_path / "out", *changed)
    assert f"loaded 200 examples from: {tmp_path / 'two' / 'train'}" in done.stdout + done.stderr


def test_another_criterion_is_refused_in_one_line(tiny_data, within_epoch):
    message = train(tiny_data, within_epoch, "--max-update", "6", "--criterion", "cross_entropy", ends=refused)
    assert "Criterion does not match; please reset the optimizer (--reset-optimizer)" in message


@pytest.mark.parametrize("skips", [False, True])
def test_all_batches_that_are_left_are_in_some_update(skips):
    for total in range(1, 13):
        for done in range(total):
            for size in range(1, 6):
                batches = CountingIterator(range(done, total), start=done)
                groups = list(GroupedIterator(batches, size, skip_remainder_batch=skips))
                left = total - done
                used = left - left % size if skips and left >= size else left
                assert [batch for group in groups for batch in group] == list(range(done, done + used))
                assert len(groups) == math.ceil(used / size) and not batches.has_next()


def test_epochs_after_a_curriculum_are_shuffled():
    """And so is an epoch that is resumed."""
    batches = [[i] for i in range(50)]
    options = {
        "dataset": ListDataset(list(range(50))),
        "collate_fn": lambda items: items[0],
        "batch_sampler": batches,
        "seed": 1,
    }
    undisturbed = EpochBatchIterator(**options, reuse_dataloader=True)
    assert list(undisturbed.next_epoch_itr(shuffle=False)) == list(range(50))
    epoch = undisturbed.next_epoch_itr(shuffle=True)
    read = [next(epoch) for _ in range(20)]
    resumed = EpochBatchIterator(**options, reuse_dataloader=True)
    resumed.load_state_dict(undisturbed.state_dict())
    assert read != sorted(read) and sorted(read + list(resumed.next_epoch_itr())) == list(range(50))
    assert list(undisturbed.next_epoch_itr(shuffle=False)) == list(range(50))


@pytest.mark.parametrize(
    "start", ["another folder", *(pytest.param(start, marks=LONG) for start in ("another score", "other weights"))]
)
def test_the_best_checkpoint_is_this_trainings(tiny_data, within_epoch, tmp_path, start):
    """The score at the start is better than any that follows."""
    folder, last = tmp_path / "out", within_epoch / "checkpoint_last.pt"
    flags = {
        "another folder": ("--restore-file", last),
        "another score": ("--best-checkpoint-metric", "nll_loss"),
        "other weights": ("--finetune-from-model", last),
    }
    if start == "another score":
        shutil.copytree(within_epoch, folder)
        (folder / "checkpoint_best.pt").write_text("of another score")
    train(tiny_data, folder, "--batch-size", "30", "--max-update", "7", *BAD_EPOCHS, *flags[start])
    assert saved_updates(folder / "checkpoint_best.pt") == 7


@LONG
def test_the_best_checkpoint_stays_when_training_resumes(tiny_data, within_epoch, tmp_path):
    shutil.copytree(within_epoch, tmp_path / "out")
    train(tiny_data, tmp_path / "out", "--batch-size", "30", "--max-update", "7", *BAD_EPOCHS)
    assert saved_updates(tmp_path / "out" / "checkpoint_best.pt") == 5


TRAINS_TWICE = dedent("""
    import signal
    import sys

    from fairseq_cli.train import cli_main

    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    command, (first, second) = sys.argv[:-2], sys.argv[-2:]
    for flags in ([first, "--lr", "0.01"], [second, "--lr", "0"]):
        sys.argv = [*command, *flags]
        cli_main()
        assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
""")


@LONG
def test_a_program_that_trains_twice(tiny_data, tmp_path):
    """The second training has handlers of signals and a best score of its own."""
    flags = (*TASK, *TRAINING, *FAMILIES["lwc"], *SIZE, "--max-epoch", "1", "--save-dir")
    run_python("-c", TRAINS_TWICE, tiny_data, *flags, tmp_path / "first", tmp_path / "second")
    assert (tmp_path / "second" / "checkpoint_best.pt").exists()
