"""`lwc-fairseq export`, and the program in the folder that it writes."""

import math
import subprocess
import sys

import pytest

from conftest import FAMILIES, LONG, TASK, TINY_TRAINING, refused, run

WITHOUT_TORCH = """
import runpy, sys
sys.modules.update(torch=None, fairseq=None)
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
MODELS = {
    "plain": (),
    "windows": ("--windows", "2,3"),
    "pre-norm": ("--layer-norm", "before", "--positions", "fairseq"),
}


def trained(data, folder, family, *flags):
    training = (*TASK, *TINY_TRAINING, *FAMILIES[family], "--max-update", "9", "--lr", "0.02", *flags)
    run("fairseq-train", data, *training, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def translate(folder, text, *flags, check=True):
    """What the folder's program writes, in a process that can import neither PyTorch nor fairseq."""
    command = [sys.executable, "-c", WITHOUT_TORCH, str(folder / "translate.py"), *flags]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tiny_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported")
    checkpoint = trained(tiny_data, out, "lwc", *MODELS[request.param])
    run("lwc-fairseq", "export", checkpoint, out / "model", "--data", tiny_data)
    return checkpoint, out / "model"


@pytest.fixture(scope="module")
def text(tiny_text):
    """Sources of the test set, an empty line, a word that the model does not know."""
    return (tiny_text / "test.de").read_text() + "\nneverseen\n"


@pytest.mark.long
class TestTranslations:
    @pytest.mark.parametrize(
        "flags", [(), ("--beam", "2", "--batch-size", "1"), ("--gnmt-length-penalty", "--lenpen", "0.3")]
    )
    def test_are_those_of_the_plugin(self, exported, tiny_data, text, flags):
        checkpoint, folder = exported
        expected = run("lwc-fairseq", "translate", checkpoint, "--data", tiny_data, "--cpu", *flags, stdin=text).stdout
        assert translate(folder, text, *flags).stdout == expected

    def test_scores_are_those_of_the_plugin(self, exported, tiny_data, tiny_text):
        checkpoint, folder = exported
        sources = (tiny_text / "test.de").read_text()
        printed = run("fairseq-interactive", tiny_data, *TASK, "--path", checkpoint, "--cpu", stdin=sources).stdout
        expected = [line.split("\t")[1:] for line in printed.splitlines() if line.startswith("H-")]
        found = [line.split("\t") for line in translate(folder, sources, "--scores").stdout.splitlines()]
        assert [text for _, text in found] == [text for _, text in expected]
        natural = [float(score) * math.log(2) for score, _ in expected]  # fairseq prints logarithms to base 2
        assert [float(score) for score, _ in found] == pytest.approx(natural, abs=1e-4)

    def test_several_for_each_line(self, exported, text):
        _, folder = exported
        best = translate(folder, text, "--beam", "3").stdout.splitlines()
        lines = translate(folder, text, "--beam", "3", "--n-best", "3").stdout.splitlines()
        assert lines[::3][:4] == best[:4] and len(set(lines[:3])) == 3

    def test_unknown_words_are_told(self, exported, text):
        _, folder = exported
        assert "1 tokens are not in the vocabulary, most often: neverseen" in translate(folder, text).stderr


@pytest.mark.long
def test_whole_numbers_of_8_bits(tiny_data, tmp_path, text):
    checkpoint = trained(tiny_data, tmp_path, "lwc")
    for name, flags in (("single", ()), ("int8", ("--int8",))):
        run("lwc-fairseq", "export", checkpoint, tmp_path / name, "--data", tiny_data, *flags)
    sizes = [(tmp_path / name / "step.onnx").stat().st_size for name in ("single", "int8")]
    assert sizes[1] < sizes[0]
    assert len(translate(tmp_path / "int8", text).stdout.splitlines()) == len(text.splitlines())


def test_a_folder_that_exists(tiny_data, tmp_path):
    message = refused("lwc-fairseq", "export", "model.pt", tmp_path, "--data", tiny_data)
    assert message == f"lwc-fairseq: error: {tmp_path} exists: remove it, or give another folder"


@pytest.mark.parametrize("family", ["deepatt", pytest.param("abd", marks=LONG)])
def test_another_model(tiny_data, tmp_path, family):
    checkpoint = trained(tiny_data, tmp_path / "trained", family)
    message = refused("lwc-fairseq", "export", checkpoint, tmp_path / "out", "--data", tiny_data)
    assert "only the layer-wise coordinated Transformer without ablations can be exported" in message
    assert not (tmp_path / "out").exists()
