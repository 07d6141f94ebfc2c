"""`lwc-fairseq translate` and `lwc_fairseq.load`: raw text in, translations out."""

import os
import pty
import shutil
import subprocess

import numpy as np
import pytest
import torch
import yaml

from conftest import FRONT_DOOR, ROOT, TASK, TINY_LWC, TINY_TRAINING, hypotheses, refused, run
from lwc_fairseq import load
from lwc_fairseq.preparation import Preparation, Words, read_preparation, write_preparation
from lwc_fairseq_compat import UserError

RAW = ["Ba de.", "", "fi", "GA ge gi go, ba"]
"""Raw lines; the model knows lower-cased words, and no punctuation."""
TOKENS = ["ba de .", "", "fi", "ga ge gi go , ba"]


@pytest.fixture(scope="module")
def described_data(tiny_data, tmp_path_factory):
    """The tiny data with a `text.yaml`, as the recipes write it. BPE splits `fi` alone into its letters."""
    data = tmp_path_factory.mktemp("described") / "data"
    shutil.copytree(tiny_data, data)
    merges = sorted({f"{word[0]} {word[1]}</w>" for word in " ".join(TOKENS).split() if len(word) > 1 and word != "fi"})
    (data / "codes").write_text("\n".join(["#version: 0.2", *merges, ""]))
    describe(data, tokenize=True, case="lower", bpe="subword_nmt", codes="codes")
    return data


def describe(data, **keys) -> None:
    (data / "text.yaml").write_text(yaml.safe_dump({"source": "de", "target": "en", **keys}))


@pytest.fixture(scope="module")
def seeds(described_data, tmp_path_factory):
    """Two models of the same data, in folders of their own."""
    folder = tmp_path_factory.mktemp("seeds")
    for seed in ("1", "2"):
        out = ("--max-update", "12", "--seed", seed, "--save-dir", folder / seed)
        run("fairseq-train", described_data, "--task", "concat_translation", *TINY_LWC, *TINY_TRAINING, *out)
    return [folder / seed / "checkpoint_last.pt" for seed in ("1", "2")]


def translate(*arguments, lines=RAW, check: bool = True):
    return run("lwc-fairseq", "translate", *arguments, stdin="".join(f"{line}\n" for line in lines), check=check)


def expected(data, *checkpoints) -> list[str]:
    """The translations of fairseq-interactive, given the words as BPE splits them."""
    path = ":".join(map(str, checkpoints))
    words = "".join(f"{line}\n" for line in TOKENS).replace("fi\n", "f@@ i\n")
    output = run("fairseq-interactive", data, *TASK, "--path", path, "--cpu", stdin=words).stdout
    return [f"{text} ".replace("@@ ", "").rstrip() for text, _ in hypotheses(output)]


def test_one_line_for_each_line(described_data, seeds):
    done = translate(seeds[0], "--cpu")
    assert done.stdout.splitlines() == expected(described_data, seeds[0])
    assert done.stdout.splitlines()[1] == "" and "4 lines" in done.stderr


def test_buffers_keep_the_order(seeds):
    whole = translate(seeds[0]).stdout
    assert translate(seeds[0], "--buffer-size", "3", "--batch-size", "1").stdout == whole


def test_several_checkpoints_are_an_ensemble(described_data, seeds):
    translations = translate(*seeds, "--data", described_data).stdout.splitlines()
    assert translations == expected(described_data, *seeds)
    assert load(seeds, described_data).translate(RAW) == translations


def test_text_that_is_not_described_is_taken_as_it_is(tiny_data, seeds):
    lines = translate(seeds[0], "--data", tiny_data, lines=TOKENS[2:]).stdout.splitlines()
    assert lines == load(seeds[0], tiny_data).translate(TOKENS[2:])
    failed = translate(seeds[0], "--data", tiny_data, "--detokenize", check=False)
    assert failed.returncode and "no text.yaml says how its text was made" in failed.stderr.splitlines()[-1]


@pytest.mark.parametrize("task", ["translation", "concat_translation"])
def test_a_line_that_is_too_long_is_truncated(tiny_data, tmp_path, task):
    short = ("--max-source-positions", "6", "--skip-invalid-size-inputs-valid-test", "--max-update", "1")
    run("fairseq-train", tiny_data, "--task", task, *TINY_LWC, *TINY_TRAINING, *short, "--save-dir", tmp_path)
    done = translate(tmp_path / "checkpoint_last.pt", lines=["ba", "ba " * 9, "ba " * 5])
    _, long, cut = done.stdout.split("\n")[:3]
    assert long == cut and "a source has 10 tokens" in done.stderr and "only the first 6 are translated" in done.stderr


def test_a_description_of_the_other_direction(described_data, tmp_path):
    out = ("--source-lang", "en", "--target-lang", "de", "--max-update", "1", "--save-dir", tmp_path)
    run("fairseq-train", described_data, "--task", "concat_translation", *TINY_LWC, *TINY_TRAINING, *out)
    failed = translate(tmp_path / "checkpoint_last.pt", check=False)
    assert (
        "text.yaml is for de to en, but the model translates en to de: name the codes" in failed.stderr.splitlines()[-1]
    )


def test_pictures_of_attention_take_raw_text_too(described_data, seeds, tmp_path):
    """As `translate` and `serve` do. With --bpe-codes the text is tokenized, and its case is kept."""
    given = ("lwc-fairseq", "attention", seeds[0], "--data", described_data, "--out", tmp_path / "a.svg")
    files = ("--source", "Ba fi.", "--target", "Fi, ba", "--weights", tmp_path / "a.npz")
    done = run(*given, *files)
    arrays = np.load(tmp_path / "a.npz")
    assert [token.replace("<unk>", "") for token in arrays["columns"][:5]] == ["ba", "f@@", "i", ".", "</s>"]
    assert [token.replace("<unk>", "") for token in arrays["rows"]] == ["f@@", "i", ",", "ba", "</s>"]
    assert "--source: not in the vocabulary, so the model reads <unk>: f@@ i .\n" in done.stderr
    run(*given, *files, "--bpe-codes", described_data / "codes")
    assert np.load(tmp_path / "a.npz")["columns"][0] == "B<unk>@@"
    other, picture = shutil.copytree(described_data, tmp_path / "other"), tmp_path / "b.svg"
    (other / "text.yaml").write_text("source: en\ntarget: de\n")
    message = refused("lwc-fairseq", "attention", seeds[0], "--data", other, *files, "--out", picture)
    assert "text.yaml is for en to de, but the model translates de to en: name the codes" in message
    assert not picture.exists()


def test_sub_words_without_a_description(tiny_data, described_data, seeds):
    given = (seeds[0], "--data", tiny_data, "--bpe-codes", described_data / "codes")
    done = translate(*given, lines=TOKENS)
    assert done.stdout.splitlines() == expected(described_data, seeds[0])
    assert done.stderr.endswith("so the model read <unk>, most often for: . f@@ i ,\n")
    done = translate(*given[:3], lines=["ba.", "de ba.", "de x"])
    assert "3 tokens are not in the vocabulary, so the model read <unk>, most often for: ba. x (if" in done.stderr
    assert done.stderr.endswith("--bpe-codes or --sentencepiece-model makes them)\n")
    failed = translate(*given[:3], "--sentencepiece-model", described_data / "codes", check=False)
    assert failed.stderr.endswith("codes: not a model of sentencepiece\n")


def test_attention_in_python(seeds):
    model = load(seeds[0], attention=True)
    ((best, *_),) = model.generate([model.encode("ba de ga")], beam=2)
    assert best["attention"].shape == (4, len(best["tokens"]))
    assert (best["attention"].sum(0) > 0).all() and len(best["alignment"]) == len(best["tokens"]) - 1
    ((without, *_),) = load(seeds[0]).generate([model.encode("ba de ga")], beam=2)
    assert not without["attention"].numel() and torch.equal(without["tokens"], best["tokens"])


def test_text_becomes_words_and_words_become_text(tmp_path):
    (tmp_path / "model").write_text("haus (1/1)\nHaus (5/6) haus (1)\nDas (1/9) das (8)\n")
    describe(tmp_path, normalize=True, tokenize=True, case="truecase", case_model="model")
    words = Words(read_preparation(tmp_path), detokenize=True)
    assert words.encode("Das Haus, „alt“!") == "das Haus , &quot; alt &quot; !"
    assert words.decode("the house , it is . ") == "The house, it is."
    for content in (b"haus", b"Haus \xff"):
        (tmp_path / "model").write_bytes(content)
        with pytest.raises(UserError, match="model: not a model of sacremoses' truecaser: "):
            Words(read_preparation(tmp_path), detokenize=True)
    describe(tmp_path, tokenize=True, split_hyphens=True)
    assert Words(read_preparation(tmp_path), detokenize=False).encode("E-Mail") == "E @-@ Mail"
    describe(tmp_path, tokenize_target=True)
    words = Words(read_preparation(tmp_path), detokenize=True)
    assert (words.encode("a, b"), words.decode("a , b")) == ("a, b", "a, b")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"case": "upper"}, "case upper: choose keep, lower, truecase"),
        ({"bpe": "wordpiece"}, "bpe wordpiece: choose subword_nmt, sentencepiece"),
        ({"bpe": "sentencepiece"}, "codes: missing: no such file"),
        ({"case": "truecase", "case_model": "none"}, "none: no such file"),
        ({"tokenise": True}, "tokenise: no such key; the keys are source, target, normalize"),
    ],
)
def test_a_bad_description_is_named(keys, message, tmp_path):
    describe(tmp_path, **keys)
    with pytest.raises(ValueError, match=message):
        read_preparation(tmp_path)


@pytest.mark.parametrize("source", ["no", "'no'", "1.10"])
def test_a_language_is_read_as_it_is_written(tmp_path, source):
    (tmp_path / "text.yaml").write_text(f"source: {source}\ntarget: on\n")
    preparation = read_preparation(tmp_path)
    assert (preparation.source, preparation.target, preparation.tokenize) == (source.strip("'"), "on", False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tokenize: "false"', 'tokenize: "false": give true or false, without quotation marks'),
        ("normalize: off", "normalize: off: give true or false"),
        ("tokenize_target: 1", "tokenize_target: 1: give true or false"),
        ("codes: [a]", "codes: not one value: give a text"),
        ("case: lower\ncase: keep", ", line 4: not YAML: case: this key occurs twice"),
        ("source: {de: en}", ", line 3: not YAML: source: this key occurs twice"),
        ("- a list", "not YAML: "),
    ],
)
def test_settings_of_the_wrong_type(tmp_path, text, message):
    (tmp_path / "text.yaml").write_text(f"source: de\ntarget: en\n{text}\n")
    with pytest.raises(ValueError) as refused:
        read_preparation(tmp_path)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/text.yaml") and message in said and "\n" not in said


def test_a_setting_of_the_wrong_type_is_refused_before_anything_is_translated(seeds, tiny_data, tmp_path):
    data = shutil.copytree(tiny_data, tmp_path / "data")
    (data / "text.yaml").write_text("source: de\ntarget: en\ntokenize: yes\n")
    failed = translate(seeds[0], "--data", data, check=False)
    assert failed.stderr == f"lwc-fairseq: error: {data}/text.yaml: tokenize: yes: give true or false\n"


def test_what_is_written_is_what_is_read(tmp_path):
    """`no` is a language in every reader of YAML, and what is wrong is not written."""
    (tmp_path / "codes").touch()
    settings = {"source": "no", "target": "en", "tokenize": "true", "bpe": "subword_nmt", "codes": "codes"}
    write_preparation(tmp_path, settings)
    assert yaml.safe_load((tmp_path / "text.yaml").read_text()) == {**settings, "tokenize": True}
    assert read_preparation(tmp_path) == Preparation(**{**settings, "tokenize": True, "codes": str(tmp_path / "codes")})
    before = (tmp_path / "text.yaml").read_text()
    with pytest.raises(ValueError, match="tokenize: yes: give true or false"):
        write_preparation(tmp_path, {**settings, "tokenize": "yes"})
    assert (tmp_path / "text.yaml").read_text() == before


def test_missing_files_are_named(seeds, tmp_path):
    failed = translate(seeds[0], tmp_path / "none.pt", check=False)
    assert failed.stderr.endswith(f"error: checkpoint {tmp_path / 'none.pt'}: no such file or folder\n")
    failed = translate(seeds[0], "--data", tmp_path / "none", check=False)
    assert failed.stderr.endswith(f"error: data {tmp_path / 'none'}: no such file or folder\n")


def test_text_in_the_place_of_a_checkpoint(seeds, tmp_path):
    (tmp_path / "raw.de").write_text("Ba de.\n")
    failed = translate(seeds[0], tmp_path / "raw.de", check=False)
    assert f"error: {tmp_path / 'raw.de'} is text, not a checkpoint: give text on standard input" in failed.stderr


def test_text_that_is_not_utf_8_and_byte_order_marks(seeds, tmp_path):
    plain = translate(seeds[0], lines=["ba de"])
    marked = translate(seeds[0], lines=["\N{BYTE ORDER MARK}ba de"])
    assert marked.stdout == plain.stdout and "warning" not in marked.stderr
    command = f"lwc-fairseq translate {seeds[0]} --buffer-size 2 < {tmp_path / 'text'}"
    (tmp_path / "text").write_bytes(b"ba\nde\nga \xdf\nba\n\xff\n")
    done = run("bash", "-c", command)
    assert len(done.stdout.splitlines()) == 5
    assert "warning: line 3 (and 1 more) has characters that are not UTF-8, or were lost" in done.stderr
    assert "warning: 2 tokens are not in the vocabulary" in done.stderr


def test_typed_text_is_translated_at_once(seeds):
    expected = translate(seeds[0], lines=["ba de"]).stdout
    terminal, its_end = pty.openpty()
    pipes = {"stdin": its_end, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(["lwc-fairseq", "translate", seeds[0]], **pipes, env=FRONT_DOOR.environment, cwd=ROOT)
    os.write(terminal, b"ba de\n")
    assert process.stdout.readline() == expected
    os.write(terminal, b"\x04")
    rest, messages = process.communicate(timeout=60)
    assert not rest and "type a sentence a line; Ctrl-D ends" in messages
