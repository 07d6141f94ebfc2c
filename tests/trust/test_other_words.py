"""A model meets only the words that it was trained with, in their order."""

import shutil

import pytest
import torch

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, binarize, hypotheses, refused, run
from lwc_fairseq import load
from lwc_fairseq_compat import UserError


@pytest.fixture(scope="module")
def other_data(tiny_text, tiny_data, tmp_path_factory):
    """The same text with a dictionary in which the fifth and the sixth word have changed places."""
    folder = tmp_path_factory.mktemp("other")
    lines = (tiny_data / "dict.de.txt").read_text().splitlines(keepends=True)
    lines[4], lines[5] = lines[5], lines[4]
    (folder / "words.txt").write_text("".join(lines))
    return binarize(tiny_text, folder / "bin", "--joined-dictionary", "--srcdict", folder / "words.txt")


def train(data, out, *flags):
    return ("fairseq-train", data, *TASK, *TINY_TRAINING, *FAMILIES["lwc"], "--save-dir", out, *flags)


COMMANDS = {
    "generate": lambda path, data: ("fairseq-generate", data, *TASK, "--path", path, "--cpu"),
    "generate, stock task": lambda path, data: ("fairseq-generate", data, *TASK[:2], "--path", path, "--cpu"),
    "interactive": lambda path, data: ("fairseq-interactive", data, *TASK, "--path", path, "--cpu"),
    "validate": lambda path, data: ("fairseq-validate", data, *TASK, "--path", path, "--cpu", "--max-tokens", "400"),
    "resume": lambda path, data: train(data, path.parent, "--max-update", "20"),
    "restore": lambda path, data: train(data, path.parent / "new", "--restore-file", path, "--reset-optimizer"),
    "finetune": lambda path, data: train(data, path.parent / "new", "--finetune-from-model", path),
    "translate": lambda path, data: ("lwc-fairseq", "translate", path, "--data", data, "--cpu"),
    "align": lambda path, data: ("lwc-fairseq", "align", path, "--data", data),
    "attention": lambda path, data: (
        "lwc-fairseq",
        "attention",
        path,
        "--data",
        data,
        "--source",
        "ba",
        "--out",
        "a.png",
    ),
}


SHORT = ("generate", "interactive", "resume", "translate")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SHORT else LONG) for name in COMMANDS])
def test_other_words_are_refused(name, tiny_checkpoint, tiny_data, other_data, tmp_path):
    checkpoint = shutil.copy(tiny_checkpoint, tmp_path / "checkpoint_last.pt")
    message = refused(*COMMANDS[name](checkpoint, other_data), stdin="ba\n", cwd=tmp_path)
    now, then = ((data / "dict.de.txt").read_text().splitlines()[4].split()[0] for data in (other_data, tiny_data))
    assert f"{checkpoint}: the words of {other_data / 'dict.'}" in message
    assert f"word 5 is '{now}', not '{then}'" in message and "--skip-dictionary-check" in message


def test_the_check_can_be_skipped(tiny_checkpoint, other_data):
    skip = ("--skip-dictionary-check",)
    assert hypotheses(run(*COMMANDS["generate"](tiny_checkpoint, other_data), *skip).stdout)
    run(*COMMANDS["translate"](tiny_checkpoint, other_data), *skip, stdin="ba\n")


def test_from_python(tiny_checkpoint, other_data):
    with pytest.raises(UserError, match="word 5 is"):
        load(tiny_checkpoint, other_data)
    assert load(tiny_checkpoint, other_data, skip_dictionary_check=True).translate(["ba"])


def test_checkpoints_without_words_work_as_before(tiny_checkpoint, other_data, tmp_path):
    """Those of fairseq without the compatibility package."""
    state = torch.load(tiny_checkpoint)
    assert set(state["task_state"].pop("dictionaries")) == {"src_dict", "tgt_dict"}
    torch.save(state, tmp_path / "stock.pt")
    assert hypotheses(run(*COMMANDS["generate"](tmp_path / "stock.pt", other_data)).stdout)


def test_folders_of_data_with_other_words_are_refused(tiny_data, other_data, tmp_path):
    message = refused(*train(f"{tiny_data}:{other_data}", tmp_path, "--max-update", "1"))
    assert f"the words of {other_data / 'dict.'}" in message and "word 5 is" in message
    run(*train(f"{tiny_data}:{tiny_data}", tmp_path, "--max-update", "1", "--no-save"))


def test_an_ensemble_and_an_average_of_other_words_are_refused(tiny_checkpoint, tiny_data, other_data, tmp_path):
    run(*train(other_data, tmp_path, "--max-update", "1"))
    other = tmp_path / "checkpoint_last.pt"
    message = refused(*COMMANDS["generate"](f"{tiny_checkpoint}:{other}", tiny_data))
    assert f"{other}: the words of {tiny_data / 'dict.'}" in message
    message = refused("lwc-fairseq", "average", tiny_checkpoint, other, "--out", tmp_path / "mean.pt")
    assert str(tiny_checkpoint) in message and f"{other}: " in message and "word 5 is" in message
    assert not (tmp_path / "mean.pt").exists()
