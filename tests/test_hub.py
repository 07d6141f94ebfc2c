"""Models in Python: `lwc_fairseq.load`, and fairseq's own `from_pretrained`."""

import pytest
import torch

from conftest import hypotheses, run
from lwc_fairseq import load
from lwc_fairseq.models.lwc_transformer import LWCTransformerModel

SENTENCES = ["ba de", "fi", "ga ge gi go ba"]


@pytest.fixture(scope="module")
def printed(tiny_checkpoint, tiny_data):
    """What fairseq-interactive prints."""
    flags = ("--path", tiny_checkpoint, "--user-dir", "lwc_fairseq", "--task", "concat_translation", "--cpu")
    output = run("fairseq-interactive", tiny_data, *flags, stdin="".join(f"{text}\n" for text in SENTENCES)).stdout
    return [text for text, _ in hypotheses(output)]


def test_translates_as_the_command_does(tiny_checkpoint, tiny_data, printed):
    model = load(tiny_checkpoint, tiny_data)
    assert model.translate(SENTENCES) == printed
    assert model.translate(SENTENCES[0]) == printed[0]


def test_an_ensemble_of_one_model_twice_is_that_model(tiny_checkpoint, tiny_data, printed):
    assert load([tiny_checkpoint, tiny_checkpoint], tiny_data).translate(SENTENCES) == printed


def test_sub_words(tiny_checkpoint, tiny_data, printed, tmp_path):
    words = " ".join(SENTENCES).split()
    merges = sorted({f"{word[0]} {word[1]}</w>" for word in words if word != "fi"})
    (tmp_path / "codes").write_text("\n".join(["#version: 0.2", *merges, ""]))
    model = load(tiny_checkpoint, tiny_data, bpe_codes=tmp_path / "codes")
    assert model.apply_bpe("ba fi") == "ba f@@ i"
    assert model.translate(SENTENCES[0]) == printed[0]


def test_a_tokenizer_of_fairseq(tiny_checkpoint, tiny_data, printed):
    model = load(tiny_checkpoint, tiny_data, tokenizer="moses", source_lang="de", target_lang="en")
    assert model.translate(SENTENCES) == printed
    assert torch.equal(model.encode("ba,de"), model.binarize("ba , de"))


def test_settings_of_the_task(tiny_checkpoint, tiny_data):
    scores = [
        load(tiny_checkpoint, tiny_data, **settings).generate([torch.tensor([5, 6, 2])])[0][0]["score"]
        for settings in ({}, {"gnmt_length_penalty": True})
    ]
    assert scores[0] != scores[1]


def test_fairseqs_own_way(tiny_checkpoint, tiny_data, printed):
    folder, name = tiny_checkpoint.parent, tiny_checkpoint.name
    model = LWCTransformerModel.from_pretrained(str(folder), name, str(tiny_data))
    assert model.translate(SENTENCES) == printed


def test_bad_input(tiny_checkpoint, tiny_data, tmp_path):
    with pytest.raises(ValueError, match="no such file or folder"):
        load(tmp_path / "none.pt", tiny_data)
    with pytest.raises(ValueError, match="no such file or folder"):
        load(tiny_checkpoint, tmp_path / "none")


def test_a_setting_that_does_not_exist(tiny_checkpoint, tiny_data):
    with pytest.raises(ValueError, match="load: dropoutt: neither the task nor the model has an option of this name"):
        load(tiny_checkpoint, tiny_data, dropoutt=3)


def test_a_beam_that_would_have_no_effect(tiny_checkpoint, tiny_data):
    with pytest.raises(ValueError, match=r"load: beam: give it to translate, as in model.translate\(lines, beam=3\)"):
        load(tiny_checkpoint, tiny_data, beam=3)


def test_an_ensemble_of_files_in_two_folders(tiny_checkpoint, tiny_data, printed, tmp_path):
    copy = tmp_path / "copy.pt"
    copy.write_bytes(tiny_checkpoint.read_bytes())
    assert load([tiny_checkpoint, copy], tiny_data).translate(SENTENCES) == printed


def test_data_of_the_training_that_are_gone(tiny_checkpoint, tmp_path):
    state = torch.load(tiny_checkpoint, weights_only=False)
    state["cfg"]["task"]["data"] = str(tmp_path / "gone")
    torch.save(state, tmp_path / "moved.pt")
    with pytest.raises(ValueError, match="gone, which does not exist here: name the folder of its data"):
        load(tmp_path / "moved.pt")
