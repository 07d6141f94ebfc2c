"""DeepAtt and its relatives through fairseq's own commands, on real files."""

import pytest
import torch

from conftest import LONG, TINY_TRAINING, assert_resumed, binarize, hypotheses, run

SIZES = ("--embed-dim", "12", "--hidden-dim", "16", "--init-std", "0.1")
GENERATE = ("--user-dir", "lwc_fairseq", "--beam", "3", "--max-len-b", "12", "--cpu")


def train(data, out, arch, *flags, **settings):
    preset = ("--user-dir", "lwc_fairseq", "--arch", arch, *SIZES)
    return run("fairseq-train", data, *preset, *TINY_TRAINING, "--save-dir", out, *flags, **settings)


def generate(data, checkpoint, *flags):
    return run("fairseq-generate", data, "--path", checkpoint, *GENERATE, *flags).stdout


@pytest.fixture(scope="module")
def separate_data(tiny_text, tmp_path_factory):
    """The pairs of `tiny_text` with a dictionary for each side, of different size."""
    return binarize(tiny_text, tmp_path_factory.mktemp("separate") / "bin", "--nwordssrc", "16")


@pytest.fixture(scope="module")
def checkpoint(separate_data, tmp_path_factory):
    """A checkpoint of a small deepatt after a few updates."""
    folder = tmp_path_factory.mktemp("deepatt")
    train(separate_data, folder, "deepatt", "--max-update", "30", "--init-std", "0.3")
    return folder / "checkpoint_last.pt"


RELATIVES = ("udeepatt", "vdeepatt", "wideatt", "deepnmt", "rnnsearch", "mheadnmt")


@pytest.mark.parametrize(
    "preset", [pytest.param(preset, marks=() if preset == "mheadnmt" else LONG) for preset in RELATIVES]
)
def test_each_preset_trains_and_translates(preset, separate_data, tmp_path):
    train(separate_data, tmp_path, preset, "--max-update", "2")
    assert torch.load(tmp_path / "checkpoint_last.pt")["cfg"]["model"]["_name"] == preset
    assert len(hypotheses(generate(separate_data, tmp_path / "checkpoint_last.pt"))) == 20
    assert_resumed(train(separate_data, tmp_path, preset, "--max-update", "4"), 2)


def test_training_as_in_the_paper(separate_data, tmp_path):
    """Adadelta, clipping at 5, 80 sentences a batch; one embedding table for both sides; the loss falls."""
    paper = ("--optimizer", "adadelta", "--adadelta-rho", "0.95", "--adadelta-eps", "1e-6", "--lr", "1.0")
    flags = ("--clip-norm", "5", "--batch-size", "80", "--max-update", "40", "--criterion", "cross_entropy")
    log = train(separate_data, tmp_path, "rnnsearch", *paper, *flags, "--log-interval", "1", "--init-std", "0.3")
    losses = [
        float(line.split("loss=")[1].split(",")[0])
        for line in (log.stdout + log.stderr).splitlines()
        if "train_inner" in line
    ]
    assert len(losses) > 30
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    optimizer = torch.load(tmp_path / "checkpoint_last.pt")["cfg"]["optimizer"]
    assert (optimizer.optimizer, optimizer.adadelta_rho, optimizer.adadelta_eps) == ("adadelta", 0.95, 1e-6)


def test_alignments_of_the_layer_that_is_named(separate_data, checkpoint):
    soft = {}
    for layer in (0, 1):
        override = ("--model-overrides", f'{{"alignment_layer": {layer}}}')
        output = generate(separate_data, checkpoint, "--print-alignment", "soft", *override)
        soft[layer] = [line for line in output.splitlines() if line.startswith("A-")]
    assert len(soft[0]) == len(soft[1]) == 20
    assert soft[0] != soft[1]
    for line in soft[0]:
        for row in line.split("\t")[1].split(" "):
            # the whole source without its end symbol
            assert 0 < sum(map(float, row.split(","))) <= 1.001


def test_interactive_under_concat_translation(separate_data, checkpoint):
    flags = ("--path", checkpoint, *GENERATE, "--task", "concat_translation", "--buffer-size", "4", "--batch-size", "4")
    output = run("fairseq-interactive", separate_data, *flags, stdin="ba de\n\nnever seen\nfi\n").stdout
    found = hypotheses(output)
    assert len(found) == 4
    assert found[1] == ("", 0.0) and found[0][0] and found[2][0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--attention-layers", "0"), "--attention-layers 0: must be at least 1"),
        (("--share-all-embeddings",), "(16 and 24 types): run fairseq-preprocess with --joined-dictionary"),
    ],
)
def test_impossible_settings(flags, message, separate_data, tmp_path):
    done = train(separate_data, tmp_path / "out", "deepatt", *flags, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode and last.startswith("fairseq-train: error: ") and message in last
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "out").glob("*.pt"))
