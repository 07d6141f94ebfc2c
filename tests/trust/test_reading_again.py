"""What training has written can be read again, whatever a plugin puts into it and whatever files are gone."""

import argparse
import datetime
import decimal
import weakref
from collections import defaultdict
from textwrap import dedent

import numpy as np
import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, torch_persistent_save

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, refused, run, saved_updates
from lwc_fairseq import load
from lwc_fairseq.cli import average
from lwc_fairseq_compat import UserError

SMALL = ("--encoder-embed-dim", "8", "--decoder-embed-dim", "8")
LAYERS = ("--encoder-layers", "1", "--decoder-layers", "1")
HEADS = ("--encoder-attention-heads", "2", "--decoder-attention-heads", "2")
WITH_EMBEDDINGS = {
    "transformer": ("--arch", "transformer", *SMALL, *LAYERS, *HEADS),
    "lstm": ("--arch", "lstm", *SMALL, "--encoder-hidden-size", "8", "--decoder-hidden-size", "8")
    + ("--decoder-out-embed-dim", "8"),
}


def train(data, out, *flags, ends=run, task=TASK):
    return ends("fairseq-train", data, *task, *TINY_TRAINING, *flags, "--save-dir", out)


def write_embeddings(path, data, width: int) -> None:
    words = [line.split()[0] for line in (data / "dict.de.txt").read_text().splitlines()]
    path.write_text(f"{len(words)} {width}\n" + "".join(f"{word}{' 0.1' * width}\n" for word in words))


@pytest.mark.parametrize("change", ["gone", pytest.param("of another width", marks=LONG)])
@pytest.mark.parametrize("arch", ["transformer", pytest.param("lstm", marks=LONG)])
def test_without_the_embeddings_it_began_with(tiny_data, tmp_path, arch, change):
    path, out = tmp_path / "vectors.txt", tmp_path / "out"
    write_embeddings(path, tiny_data, 8)
    both = ("--encoder-embed-path", path, "--decoder-embed-path", path)
    train(tiny_data, out, *WITH_EMBEDDINGS[arch], *both, "--max-update", "1")
    path.unlink() if change == "gone" else write_embeddings(path, tiny_data, 4)
    last = out / "checkpoint_last.pt"
    assert load(last, tiny_data).translate(["ba de"])
    run("fairseq-generate", tiny_data, *TASK, "--cpu", "--max-tokens", "400", "--path", last)
    train(tiny_data, out, *WITH_EMBEDDINGS[arch], *both, "--max-update", "2")
    assert saved_updates(last) == 2
    flags = (*WITH_EMBEDDINGS[arch], *both, "--max-update", "1")
    message = train(tiny_data, tmp_path / "new", *flags, ends=refused)
    reason = "vectors.txt (--encoder-embed-path or --decoder-embed-path): No such file" if change == "gone" else "size"
    assert reason in message and not list((tmp_path / "new").glob("*"))


@LONG
def test_without_the_checkpoint_it_began_with(tiny_data, tmp_path):
    reverse, out = tmp_path / "reverse", tmp_path / "out"
    rnnsearch = ("--arch", "rnnsearch", "--embed-dim", "12", "--hidden-dim", "16")
    train(tiny_data, reverse, *rnnsearch, "--reverse-target", "--max-update", "1")
    flags = (*FAMILIES["abd"], "--init-backward-from", reverse / "checkpoint_last.pt")
    train(tiny_data, out, *flags, "--max-update", "1")
    (reverse / "checkpoint_last.pt").unlink()
    assert load(out / "checkpoint_last.pt", tiny_data).translate(["ba de"])
    train(tiny_data, out, *flags, "--max-update", "2")
    assert saved_updates(out / "checkpoint_last.pt") == 2


PLUGIN = dedent("""
    import numpy as np

    from fairseq import metrics
    from fairseq.criterions import register_criterion
    from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig

    class Words:
        def __init__(self, number):
            self.number = number

        def __add__(self, other):
            return self

        __radd__ = __mul__ = __add__

    class Largest(metrics.Meter):
        def reset(self):
            self.value = 0

        def update(self, value):
            self.value = value

        def state_dict(self):
            return {"value": self.value}

        def load_state_dict(self, state):
            self.value = state["value"]

        @property
        def smoothed_value(self):
            return self.value

    @register_criterion("my_criterion", dataclass=CrossEntropyCriterionConfig)
    class MyCriterion(CrossEntropyCriterion):
        logged = [np.float32(1), np.float64(2), np.int64(3), np.bool_(True), np.ones(2, np.float16)]

        @classmethod
        def reduce_metrics(cls, logging_outputs):
            super().reduce_metrics(logging_outputs)
            for i, value in enumerate(cls.logged):
                metrics.log_scalar(f"_value{i}", value)
            metrics.log_custom(Largest, "largest", np.max([1, 2]))

    @register_criterion("my_unsafe_criterion", dataclass=CrossEntropyCriterionConfig)
    class MyUnsafeCriterion(MyCriterion):
        logged = [Words(3)]
""")


@pytest.fixture
def plugin(tmp_path):
    folder = tmp_path / "my_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(PLUGIN)
    return ("--user-dir", f"lwc_fairseq:{folder}", "--task", "concat_translation")


def test_numbers_of_numpy_that_a_criterion_logs(tiny_data, tmp_path, plugin):
    out = tmp_path / "out"
    for last in ("1", "2"):
        flags = (*FAMILIES["lwc"], "--criterion", "my_criterion", "--max-update", last)
        train(tiny_data, out, *flags, task=plugin)
    assert saved_updates(out / "checkpoint_last.pt") == 2
    run("fairseq-generate", tiny_data, *plugin, "--cpu", "--path", out / "checkpoint_last.pt")


def test_a_class_that_safe_reading_refuses(tiny_data, tmp_path, plugin):
    """It is refused when it is written. What it should replace stays, and what was trained is in another file."""
    out = tmp_path / "out"
    flags = (*FAMILIES["lwc"], "--criterion", "my_criterion")
    train(tiny_data, out, *flags, "--max-update", "1", task=plugin)
    before = (out / "checkpoint_last.pt").read_bytes()
    flags = (*flags, "--criterion", "my_unsafe_criterion", "--max-update", "2", "--reset-optimizer", "--reset-meters")
    message = train(tiny_data, out, *flags, "--no-epoch-checkpoints", "--disable-validation", task=plugin, ends=refused)
    assert "the checkpoint holds my_plugin.Words, which safe reading refuses" in message
    unreadable = out / "checkpoint_last.pt.unreadable"
    assert f"--restore-file {unreadable}" in message and unreadable.exists()
    assert (out / "checkpoint_last.pt").read_bytes() == before and not list(out.glob("*.tmp"))
    message = refused("fairseq-generate", tiny_data, *plugin, "--cpu", "--path", unreadable)
    assert "it holds my_plugin.Words, which is not read" in message and "add_safe_globals" in message
    assert "damaged" not in message


@pytest.mark.parametrize(
    "value",
    [
        *(np.dtype(code).type(1) for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?U"),
        *(np.ones(2, code) for code in "f?bHL"),
        np.datetime64("2020-01-01"),
        {1, 2},
        frozenset({1}),
        1j,
        b"bytes",
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal("1.5"),
        defaultdict(int, a=1),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_harmless_values(tiny_checkpoint, tmp_path, value):
    state = torch.load(tiny_checkpoint)
    state["extra_state"]["value"] = value
    torch_persistent_save(state, str(tmp_path / "checkpoint.pt"))
    read = load_checkpoint_to_cpu(str(tmp_path / "checkpoint.pt"))["extra_state"]["value"]
    assert np.all(read == value)


def test_a_value_that_cannot_be_saved(tiny_checkpoint, tmp_path):
    with pytest.raises(UserError, match=r"it would hold an object that cannot be saved \(.*lambda"):
        torch_persistent_save({**torch.load(tiny_checkpoint), "value": lambda: 0}, str(tmp_path / "checkpoint.pt"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", ["arch", "task", "criterion", "optimizer", "lr_scheduler"])
def test_what_is_not_registered_is_named(tiny_checkpoint, tiny_data, tmp_path, part):
    """In a checkpoint without `cfg`, as older versions of fairseq wrote."""
    state = torch.load(tiny_checkpoint)
    options = {
        name: value for group in state["cfg"].values() if isinstance(group, dict) for name, value in group.items()
    }
    names = {"arch": "lwc_transformer_small", "task": "concat_translation", "criterion": "cross_entropy"}
    options = {**options, **names, "optimizer": "adam", "lr_scheduler": "fixed", "user_dir": "my_plugin"}
    state = {**state, "cfg": None, "args": argparse.Namespace(**{**options, part: "my_own"})}
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(UserError, match=f"{'model' if part == 'arch' else part}, my_own, .*--user-dir my_plugin"):
        load(tmp_path / "checkpoint.pt", tiny_data)


def test_an_average_holds_one_checkpoint_at_a_time(tiny_checkpoint, tmp_path, monkeypatch):
    state, held, paths = torch.load(tiny_checkpoint), [], []
    name = next(name for name, value in state["model"].items() if value.is_floating_point())
    expected = sum(number * state["model"][name].double() for number in range(4)) / 4
    for number in range(4):
        weights = {name: number * value for name, value in state["model"].items()}
        paths.append(tmp_path / f"{number}.pt")
        torch.save({**state, "model": weights}, paths[-1])
    read = average.read

    def read_if_none_is_held(path):
        assert not any(weight() is not None for weight in held)
        state = read(path)
        held.extend(weakref.ref(value) for value in state["model"].values() if value.is_floating_point())
        return state

    monkeypatch.setattr(average, "read", read_if_none_is_held)
    average.average_checkpoints(paths, tmp_path / "mean.pt")
    torch.testing.assert_close(torch.load(tmp_path / "mean.pt")["model"][name].double(), expected)
    assert len(held) >= 4
