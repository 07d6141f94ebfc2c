"""`lwc-fairseq align`, `aer`, and a table of alignment error rates, on a tiny corpus whose alignment is known.

The target is the source from right to left.
"""

import json
import re

import pytest
import torch

from conftest import LONG, TINY_TRAINING, refusal, refused, run
from lwc_fairseq.analysis.alignment import pharaoh

TABLE = """
title: Alignments
metric: aer
optimizer: --optimizer adam --lr 1e-2 --clip-norm 5
train: --criterion cross_entropy --max-tokens 800 --max-update 1 --attention-layers 2
rows:
  - {name: deepatt, arch: deepatt, train: "--embed-dim 8 --hidden-dim 8 --init-std 0.1", hidden: true}
  - {name: first, path: "{deepatt}", generate: --layer 0, published: 50.0}
"""


@pytest.fixture(scope="module")
def gold(tiny_text, tmp_path_factory):
    path = tmp_path_factory.mktemp("gold") / "test.align"
    lengths = [len(line.split()) for line in (tiny_text / "test.en").read_text().splitlines()]
    path.write_text("".join(pharaoh((n - 1 - j, j) for j in range(n)) + "\n" for n in lengths))
    return path


@pytest.fixture(scope="module")
def trained(tiny_data, tmp_path_factory):
    """Trained until its attention follows the alignment."""
    out = tmp_path_factory.mktemp("aligner")
    run(
        *("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", "--task", "concat_translation"),
        *("--arch", "rnnsearch", "--embed-dim", "24", "--hidden-dim", "24", "--init-std", "0.1", "--dropout", "0"),
        *(*TINY_TRAINING, "--max-update", "600", "--lr", "1e-2", "--clip-norm", "5", "--save-dir", out),
    )
    return out / "checkpoint_last.pt"


@LONG
def test_links_of_a_trained_model_are_those_of_the_corpus(tiny_data, trained, gold, tmp_path):
    run("lwc-fairseq", "align", trained, "--data", tiny_data, "--out", tmp_path / "links")
    links = (tmp_path / "links").read_text().splitlines()
    assert [len(line.split()) for line in links] == [len(line.split()) for line in gold.read_text().splitlines()]
    said = run("lwc-fairseq", "aer", tmp_path / "links", gold).stdout
    rates = {name: float(value) for name, value in (part.split() for part in said.strip().split(", "))}
    assert rates["AER"] < 20 and rates["AER"] == pytest.approx(100 - rates["precision"], abs=0.02)

    table = run("lwc-fairseq", "align", trained, "--data", tiny_data, "--gold", gold).stdout.splitlines()
    assert [line.split("|")[1].strip() for line in table] == ["layer", "---", "0", "all"]
    assert float(table[-1].split("|")[2]) == rates["AER"]


def test_wrong_input_is_named(tiny_data, tiny_checkpoint, gold, tmp_path):
    (tmp_path / "short").write_text("0-0\n")
    for command, message in (
        (("aer", tmp_path / "short", gold), "1 alignments, but 20 in the gold file"),
        (("aer", gold, tmp_path / "none"), "No such file"),
        (("align", tiny_checkpoint, "--data", tiny_data, "--layer", "7"), "--layer 7: the model has 2, counted from 0"),
        (("align", tiny_checkpoint, "--data", tiny_data, "--subset", "best"), "no best in it, only test, train, valid"),
        (("align", tmp_path / "none.pt", "--data", tiny_data), "none.pt: no such checkpoint"),
        (
            ("align", tiny_checkpoint, "--data", tiny_data, "--gold", gold, "--layer", "0"),
            "--gold prints every layer: leave out",
        ),
        (
            ("align", tiny_checkpoint, "--data", tiny_data, "--gold-first", "1"),
            "--gold-first 1 says how GOLD counts words: add --gold GOLD, or leave it out",
        ),
    ):
        assert message in refusal(*command)


def test_a_sentence_that_is_too_long_for_the_model(tiny_checkpoint, tiny_data, tmp_path):
    state = torch.load(tiny_checkpoint)
    state["cfg"]["task"]["max_source_positions"] = state["cfg"]["model"]["max_source_positions"] = 5
    torch.save(state, tmp_path / "short.pt")
    said = refusal("align", tmp_path / "short.pt", "--data", tiny_data)
    assert re.search(r"test: sentence \d+ is too long for the model, which reads 5 tokens and writes 1024", said)


def test_a_table_of_error_rates(tiny_data, gold, tmp_path):
    (tmp_path / "t.yaml").write_text(TABLE)
    command = ("lwc-fairseq", "table", tmp_path / "t.yaml", "--data", tiny_data, "--out", tmp_path, "--train=--cpu")
    page = run(*command, "--gold", gold).stdout
    (row,) = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert 0 < row["value"] <= 100 and "| first | " in page and "published AER" in page
    assert "needs --gold, the alignments of the test set" in refused(*command)


def test_what_a_table_of_error_rates_refuses(tiny_data, gold, tmp_path):
    """Before anything runs."""
    (tmp_path / "t.yaml").write_text(TABLE)
    given = ("table", tmp_path / "t.yaml", "--data", tiny_data, "--out", tmp_path / "out", "--gold", gold)
    said = refusal(*given, "--generate=--layr 2")
    assert "row first: lwc-fairseq align: error: unrecognized arguments: --layr 2" in said
    assert "--references: " in refusal(*given, "--references", gold) and not (tmp_path / "out").exists()
    (tmp_path / "short").write_text("0-0\n")
    said = refusal(*given[:-1], tmp_path / "short")
    assert "--gold: 1 lines for the 20 sentences of the set test: give files that match" in said
    assert not (tmp_path / "out").exists()
