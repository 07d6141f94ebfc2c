"""`lwc-fairseq export`, and the program in the folder that it writes."""

import errno
import math
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import torch
import yaml
from sentencepiece import SentencePieceTrainer

from conftest import (
    EOS,
    FAMILIES,
    LONG,
    ROOT,
    TASK,
    TINY_RECURRENT,
    TINY_TRAINING,
    make_rnmt,
    make_transformer,
    refusal,
    refused,
    run,
)
from environments import environment_without
from lwc_fairseq import load
from lwc_fairseq.export.folder import check_scores, graphs_of
from lwc_fairseq.export.translate import Model, Text
from lwc_fairseq.preparation import Words, copy_preparation, make_subwords, read_preparation
from lwc_fairseq_compat import UserError

TINY_TRANSFORMER = (
    *("--arch", "transformer_small", "--encoder-layers", "2", "--decoder-layers", "1", "--encoder-embed-dim", "16"),
    *("--encoder-ffn-embed-dim", "32", "--encoder-attention-heads", "2", "--decoder-attention-heads", "4"),
)
TINY_LSTM = ("--arch", "lstm", "--encoder-embed-dim", "8", "--decoder-embed-dim", "8", "--decoder-hidden-size", "8")
MODELS = {
    "lwc": FAMILIES["lwc"],
    "windows": (*FAMILIES["lwc"], "--windows", "2,3"),
    "pre-norm": (*FAMILIES["lwc"], "--layer-norm", "before", "--positions", "fairseq"),
    "transformer": TINY_TRANSFORMER,
    "post-norm": (*TINY_TRANSFORMER, *("--arch", "transformer", "--share-all-embeddings", "--encoder-learned-pos")),
    "rnnsearch": ("--arch", "rnnsearch", *TINY_RECURRENT, "--share-all-embeddings"),
    "deepatt": FAMILIES["deepatt"],
    "vdeepatt": (*FAMILIES["deepatt"], "--arch", "vdeepatt"),
    "wideatt": (*FAMILIES["deepatt"], "--arch", "wideatt"),
    "mheadnmt": ("--arch", "mheadnmt", *TINY_RECURRENT, "--attention-heads", "2"),
    "abd": FAMILIES["abd"],
    "abd_lwc": (*FAMILIES["abd_lwc"], "--windows", "2,3"),
    "right-to-left": ("--arch", "rnnsearch", *TINY_RECURRENT, "--reverse-target"),
}


def trained(data, folder, *flags):
    training = (*TASK, *TINY_TRAINING, "--max-update", "9", "--lr", "0.02", *flags)
    run("fairseq-train", data, *training, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    """A function that runs the folder's program in an environment without PyTorch, fairseq and this plugin."""
    environment = environment_without(tmp_path_factory.mktemp("environment"), "torch", "fairseq", "lwc_fairseq")

    def call(folder, text, *flags, check=True):
        command = ["python", folder / "translate.py", *flags]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, check=check, env={**os.environ, **environment}
        )

    return call


@pytest.fixture(scope="module", params=MODELS)
def exported(request, tiny_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported")
    checkpoint = trained(tiny_data, out, *MODELS[request.param])
    run("lwc-fairseq", "export", checkpoint, out / "new" / "model", "--data", tiny_data)
    return checkpoint, out / "new" / "model"


@pytest.fixture(scope="module")
def text(tiny_text):
    """A mark of the byte order, sources of the test set, an empty line, a word that the model does not know."""
    return "\ufeff" + (tiny_text / "test.de").read_text() + "\nneverseen\n"


@pytest.mark.long
class TestTranslations:
    @pytest.mark.parametrize(
        "flags", [(), ("--beam", "2", "--batch-size", "1"), ("--gnmt-length-penalty", "--lenpen", "0.3")]
    )
    def test_are_those_of_the_plugin(self, exported, translate, tiny_data, text, flags):
        checkpoint, folder = exported
        expected = run("lwc-fairseq", "translate", checkpoint, "--data", tiny_data, "--cpu", *flags, stdin=text).stdout
        assert translate(folder, text, *flags).stdout == expected

    def test_scores_are_those_of_the_plugin(self, exported, translate, tiny_data, tiny_text):
        checkpoint, folder = exported
        sources = (tiny_text / "test.de").read_text()
        reverse = ("--reverse-target",) if load(checkpoint, tiny_data).cfg.task.reverse_target else ()
        translate_by_fairseq = ("fairseq-interactive", tiny_data, *TASK, "--path", checkpoint, "--cpu", *reverse)
        printed = run(*translate_by_fairseq, stdin=sources).stdout
        expected = [line.split("\t")[1:] for line in printed.splitlines() if line.startswith("H-")]
        found = [line.split("\t") for line in translate(folder, sources, "--scores").stdout.splitlines()]
        assert [text for _, text in found] == [text for _, text in expected]
        natural = [float(score) * math.log(2) for score, _ in expected]  # fairseq prints logarithms to base 2
        assert [float(score) for score, _ in found] == pytest.approx(natural, abs=1e-4)

    def test_several_for_each_line(self, exported, translate, text):
        _, folder = exported
        best = translate(folder, text, "--beam", "3").stdout.splitlines()
        lines = translate(folder, text, "--beam", "3", "--n-best", "3").stdout.splitlines()
        assert lines[::3] == best and len(lines) == 3 * len(best) and len(set(lines[:3])) == 3

    def test_a_beam_that_is_too_wide(self, exported, translate, text):
        _, folder = exported
        done = translate(folder, text, "--beam", "25", check=False)
        assert done.stderr == "translate: error: --beam 25: this model can have 23\n" and done.returncode == 1
        done = translate(folder, text, "--lenpen", "nan", check=False)
        assert "--lenpen nan: give a number from -50 to 50" in done.stderr and done.returncode == 2

    def test_text_of_which_nothing_is_known_is_not_detokenized(self, exported, translate, text):
        _, folder = exported
        done = translate(folder, text, "--detokenize", check=False)
        assert done.stderr.startswith("translate: error: --detokenize: the data had no text.yaml") and not done.stdout

    def test_graphs_of_other_weights_are_refused(self, exported, tiny_data):
        checkpoint, folder = exported
        (network,) = load(checkpoint, tiny_data).models
        check_scores(network, folder)
        with torch.no_grad():
            for weight in network.parameters():
                weight.mul_(1.1)
        with pytest.raises(UserError, match="does not compute what the model does"):
            check_scores(network, folder)

    def test_unknown_words_are_told(self, exported, translate, text):
        _, folder = exported
        assert "1 token is not in the vocabulary, most often: neverseen" in translate(folder, text).stderr


@pytest.mark.long
@pytest.mark.parametrize("model", ["lwc", "transformer", "deepatt", "abd"])
def test_whole_numbers_of_8_bits(tiny_data, tmp_path, translate, text, model):
    checkpoint = trained(tiny_data, tmp_path, *MODELS[model], "--gnmt-length-penalty")
    for name, flags in (("single", ()), ("int8", ("--int8",))):
        run("lwc-fairseq", "export", checkpoint, tmp_path / name, "--data", tiny_data, *flags)
    sizes = [(tmp_path / name / "step.onnx").stat().st_size for name in ("single", "int8")]
    assert sizes[1] < sizes[0]
    assert len(translate(tmp_path / "int8", text).stdout.splitlines()) == len(text.splitlines())


@pytest.fixture(scope="module")
def prepared(tiny_text, tmp_path_factory):
    """A folder with the files of sub-words and of a truecaser."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "merges").write_text("\ufeff#version: 0.2\nd a\nda s</w>\nh a\n", encoding="utf-8")
    (folder / "usual").write_text("haus (1/1)\nHaus (5/6) haus (1)\nDas (1/9) das (8)\n")
    options = {"vocab_size": 25, "minloglevel": 2, "model_prefix": str(folder / "pieces")}
    SentencePieceTrainer.train(input=str(tiny_text / "train.de"), **options)
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalize": True, "tokenize": True, "case": "truecase", "case_model": "usual"},
        {"tokenize": True, "split_hyphens": True, "case": "lower", "bpe": "subword_nmt", "codes": "merges"},
        {"bpe": "sentencepiece", "codes": "pieces.model"},
        {"tokenize": False, "tokenize_target": True, "bpe": "subword_nmt", "codes": "merges"},
    ],
)
@pytest.mark.parametrize("detokenize", [False, True])
def test_text_is_converted_as_in_the_plugin(prepared, tmp_path, settings, detokenize):
    (prepared / "text.yaml").write_text(yaml.safe_dump({"source": "de", "target": "en", **settings}))
    preparation = read_preparation(prepared)
    words, pieces = Words(preparation, detokenize), make_subwords(preparation.bpe, preparation.codes)
    text = Text(tmp_path, copy_preparation(preparation, tmp_path), detokenize)
    for line in ("Das Haus , „alt“ !", "E-Mail ab, du!", "  ba  dafi ", ""):
        expected = words.encode(line)
        expected = " ".join((pieces.encode(expected) if pieces else expected).split())
        assert text.encode(line).split() == expected.split()
        assert text.decode(expected) == words.decode(pieces.decode(expected) if pieces else expected)


def test_sub_words_alone_are_joined_without_sacremoses(prepared, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    settings = {"bpe": "sentencepiece", "codes": "pieces.model"}
    (prepared / "text.yaml").write_text(yaml.safe_dump({"source": "de", "target": "en", **settings}))
    text = Text(tmp_path, copy_preparation(read_preparation(prepared), tmp_path), detokenize=True)
    assert text.decode(text.encode("ba de")) == "ba de"


def test_symbols_for_the_begin_and_the_end_are_no_words(tmp_path):
    """As in the plugin. A weak model may write them, but no text has them."""
    model = object.__new__(Model)
    model.settings, model.end = {"begin": 0, "right_to_left": False}, EOS
    model.words, model.text = ["<s>", "<pad>", "</s>", "<unk>", "ba"], Text(tmp_path, {}, False)
    assert model.decode([0, 4, 3, 0, EOS]) == "ba <unk>"


@LONG
def test_the_server_of_the_page(tiny_checkpoint, tiny_data, tmp_path):
    run("lwc-fairseq", "export", tiny_checkpoint, tmp_path / "model", "--data", tiny_data)
    program = (ROOT / "docs" / "deploying.md").read_text().split("```python\n")[1].split("```")[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "model" / "serve.py").write_text(program.replace("8000", str(port)))
    address, text = f"http://127.0.0.1:{port}", "ba de\n\nga ge gi go"
    expected = run("lwc-fairseq", "translate", tiny_checkpoint, "--data", tiny_data, "--cpu", stdin=text).stdout
    with subprocess.Popen([sys.executable, "serve.py"], cwd=tmp_path / "model", stderr=subprocess.DEVNULL) as server:
        try:
            assert answer(address, text) == expected
            for name, value, status in (("Content-Length", "-1", 413), ("Sec-Fetch-Site", "cross-site", 403)):
                request = urllib.request.Request(address, text.encode(), {name: value})
                with pytest.raises(urllib.error.HTTPError, match=str(status)):
                    urllib.request.urlopen(request, timeout=60)
        finally:
            server.kill()


def answer(address, text) -> str:
    """What a server answers, which may take a few seconds to start."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(address, text.encode()) as response:
                return response.read().decode()
        except urllib.error.URLError:
            time.sleep(0.2)
    raise AssertionError("no answer")


def test_a_folder_that_exists(tiny_data, tmp_path):
    message = refused("lwc-fairseq", "export", "model.pt", tmp_path, "--data", tiny_data)
    assert message == f"lwc-fairseq: error: {tmp_path} exists: remove it, or give another folder"


def test_the_folder_translates_as_the_model(tiny_checkpoint, tiny_data, tiny_text, tmp_path):
    run("lwc-fairseq", "export", tiny_checkpoint, tmp_path / "model", "--data", tiny_data)
    lines = (tiny_text / "test.de").read_text().splitlines()
    found = [text for ((_, text),) in Model(tmp_path / "model", threads=1).translate(lines)]
    assert found == load(tiny_checkpoint, tiny_data).translate(lines)


def test_a_full_disk(tiny_checkpoint, tiny_data, tmp_path, monkeypatch):
    def copy(source, place):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)

    monkeypatch.setattr(shutil, "copy", copy)
    said = refusal("export", tiny_checkpoint, tmp_path / "out", "--data", tiny_data)
    assert said.endswith("translate.py: No space left on device") and not any(tmp_path.iterdir())


OTHERS = {
    "LSTMModel": TINY_LSTM,
    "LWCTransformerModel": (*FAMILIES["lwc"], "--separate-attention"),
    "ContextGateTransformer": (*TINY_TRANSFORMER, "--arch", "transformer_context_gate"),
}


def test_recurrent_models_without_graphs_are_refused():
    for variant in ("rnmt", "abd_rnmt"):
        with pytest.raises(UserError, match=r"model.pt: a \w+ cannot be exported: give "):
            graphs_of(make_rnmt(variant), "model.pt")


@pytest.mark.parametrize(
    "settings", [{"adaptive_softmax_cutoff": "10,12"}, {"decoder_output_dim": 8}, {"no_cross_attention": True}], ids=str
)
def test_a_transformer_with_other_parts_is_refused(settings):
    with pytest.raises(UserError, match=r"model.pt: a TransformerModel cannot be exported: give "):
        graphs_of(make_transformer(arch="transformer", **settings), "model.pt")


@pytest.mark.parametrize("name", [name if name == "LSTMModel" else pytest.param(name, marks=LONG) for name in OTHERS])
def test_another_model(tiny_data, tmp_path, name):
    checkpoint = trained(tiny_data, tmp_path / "trained", *OTHERS[name])
    message = refused("lwc-fairseq", "export", checkpoint, tmp_path / "out", "--data", tiny_data)
    assert f"{checkpoint}: a {name} cannot be exported" in message
    assert not (tmp_path / "out").exists()
