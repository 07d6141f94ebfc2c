"""Models in Python: `lwc_fairseq.load`, and fairseq's own `from_pretrained`."""

import copy
import io
import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
import torch
from fairseq.sequence_generator import SequenceGeneratorWithAlignment

from conftest import EACH_FAMILY, LONG, hypotheses, make_dictionary, run
from lwc_fairseq import load
from lwc_fairseq.models.lwc_transformer import LWCTransformerModel
from lwc_fairseq_compat import UserError

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
    with pytest.raises(ValueError, match="load: dropoutt: no option of the task, the model or the search"):
        load(tiny_checkpoint, tiny_data, dropoutt=3)


@pytest.mark.parametrize("setting", [{"max_update": 3}, {"lr": [1.0]}, {"nbest": 3}])
def test_a_setting_that_would_have_no_effect(tiny_checkpoint, tiny_data, setting):
    with pytest.raises(ValueError, match=f"load: {next(iter(setting))}: "):
        load(tiny_checkpoint, tiny_data, **setting)


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


@pytest.fixture(scope="module")
def model(tiny_checkpoint, tiny_data):
    return load(tiny_checkpoint, tiny_data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam 0: must be at least 1"),
        ({"beam": "5"}, "beam '5': must be a whole number"),
        ({"beam": 2.5}, "beam 2.5: must be a whole number"),
        ({"beam": True}, "beam True: must be a whole number"),
        ({"beem": 3}, "beem: there is no such option; there is beam"),
        ({"nbest": 3}, "nbest: there is no such option"),
        ({"constraints": "ordered"}, "constraints: there is no such option"),
        ({"lenpen": "1"}, "lenpen '1': must be a number"),
        ({"sampling": True, "sampling_topk": 300}, "sampling_topk 300: the target vocabulary has only 48 types"),
        ({"diverse_beam_groups": 2}, "beam 5 is not divisible by diverse_beam_groups 2"),
        ({"max_len_b": 0}, "max_len_b 0 is less than min_len 1"),
    ],
)
def test_options_of_a_search(model, options, message):
    for method, sources in ((model.translate, SENTENCES), (model.generate, [torch.tensor([5, 2])])):
        with pytest.raises(UserError, match=f"{method.__name__}: {message}"):
            method(sources, **options)


@pytest.mark.parametrize("sentences", [5, None, b"ba", ["ba", 5], [b"ba"]], ids=str)
def test_sentences_that_are_no_strings(model, sentences):
    with pytest.raises(UserError, match="translate: sentences: "):
        model.translate(sentences)


@pytest.mark.parametrize(
    "tokens",
    [
        5,
        "ba",
        [[5, 2]],
        torch.tensor(5),
        [torch.tensor([])],
        torch.tensor([0.5]),
        torch.tensor([48]),
        torch.tensor([-1]),
    ],
    ids=str,
)
def test_tokens_that_are_none(model, tokens):
    with pytest.raises(UserError, match="generate: tokenized_sentences: "):
        model.generate(tokens)


def test_each_sentence_has_its_own_prefix(model):
    """However long the sentences are, and whatever the size of a batch."""
    sources = [model.encode(line) for line in ("ba de", "fi ga ge gi go ba", "go")]
    prefixes = torch.tensor([[5, 6], [7, 8], [9, model.tgt_dict.pad()]])
    best = [first for first, *_ in model.generate(sources, inference_step_args={"prefix_tokens": prefixes})]
    assert [hypothesis["tokens"][:2].tolist() for hypothesis in best[:2]] == [[5, 6], [7, 8]]
    assert best[2]["tokens"][0] == 9
    for source, prefix, hypothesis in zip(sources, prefixes, best, strict=True):
        ((alone, *_),) = model.generate([source], inference_step_args={"prefix_tokens": prefix[None]})
        assert torch.equal(alone["tokens"], hypothesis["tokens"])
    for wrong in (prefixes[:2], prefixes[0], [[5], [6], [7]]):
        with pytest.raises(UserError, match="prefix_tokens: give a tensor with a row for each of 3 sentences"):
            model.generate(sources, inference_step_args={"prefix_tokens": wrong})
    for wrong in (prefixes.float(), prefixes + 48):
        with pytest.raises(UserError, match=r"inference_step_args: prefix_tokens: number 0 \(from 0\)"):
            model.generate(sources, inference_step_args={"prefix_tokens": wrong})


def test_words_are_allowed_by_sentence_beside_prefixes(model):
    numbers = []

    def allowed(number, tokens):
        numbers.append(number)
        return [2, 5 + number, 10 + number]

    sources, prefixes = [model.encode(line) for line in ("ba de", "fi", "go")], torch.tensor([[5], [6], [7]])
    best = [
        first["tokens"].tolist()
        for first, *_ in model.generate(
            sources, inference_step_args={"prefix_tokens": prefixes}, prefix_allowed_tokens_fn=allowed, max_len_b=4
        )
    ]
    assert set(numbers) == {0, 1, 2}
    for number, (prefix, *words) in enumerate(best):
        assert prefix == 5 + number and set(words) <= {2, prefix, 10 + number}


def test_a_path_with_a_colon(tiny_checkpoint, tiny_data, tmp_path):
    (tmp_path / "10:30").mkdir()
    shutil.copy(tiny_checkpoint, tmp_path / "10:30" / "model.pt")
    with pytest.raises(UserError, match=r"10:30/model\.pt: fairseq cannot read a path with ':': rename it"):
        load(tmp_path / "10:30" / "model.pt", tiny_data)


def test_other_arguments_of_generate(model):
    sources = [torch.tensor([5, 2])]
    with pytest.raises(UserError, match="generate: inference_step_args: constraints: give prefix_tokens or nothing"):
        model.generate(sources, inference_step_args={"constraints": torch.zeros(1, 1)})
    with pytest.raises(UserError, match="prefix_allowed_tokens_fn and sampling are different searches"):
        model.generate(sources, sampling=True, prefix_allowed_tokens_fn=lambda *_: [2])
    with pytest.raises(UserError, match="prefix_allowed_tokens_fn allows no translation of a sentence"):
        model.generate(sources, prefix_allowed_tokens_fn=lambda *_: [7])
    with pytest.raises(UserError, match="score: is for language models"):
        model.score(SENTENCES)
    assert model.translate([]) == [] and model.generate([]) == []


def test_the_log_has_words_of_the_source_and_of_the_translations(model, caplog, monkeypatch):
    """Each from its own dictionary."""
    monkeypatch.setattr(model, "src_dict", make_dictionary(len(model.tgt_dict)))
    with caplog.at_level("INFO", logger="lwc_fairseq.hub"):
        ((best, other),) = model.generate([torch.tensor([5, 4, 2])], beam=2, verbose=True, print_alignment="soft")
    hypotheses = [f"H\t{row['score']}\t{model.decode(row['tokens'])}" for row in (best, other)]
    assert caplog.messages == ["S\tw1 w0", *hypotheses]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "load: checkpoint: the list is empty"),
        ((5,), "load: checkpoint 5: give the path of a file"),
        (("missing.pt",), "checkpoint missing.pt: no such file or folder"),
        ((None, {"detokenize": "no"}), "load: detokenize 'no': must be True or False"),
        ((None, {"gnmt_length_penalty": "no"}), "load: gnmt_length_penalty 'no': must be True or False"),
        ((None, {"batch_size": "8"}), "load: batch_size '8': must be a whole number or None"),
        ((None, {"max_tokens": 0}), "load: max_tokens 0: must be at least 1"),
        ((None, {"lenpen": "x"}), "load: lenpen 'x': must be a number"),
        ((None, {"bpe_codes": "setup.py", "detokenize": True}), "detokenize follows text.yaml, which bpe_codes"),
        ((None, {"max_source_positions": "x"}), "load: max_source_positions: Value 'x' of type 'str'"),
        ((None, {"reverse_target": True}), "load: reverse_target: the checkpoint says how it was trained"),
        ((None, {"tokenizer": "mooses"}), "load: tokenizer mooses: choose "),
        ((None, {"bpe_codes": "."}), "bpe_codes .: give a file"),
        ((None, {"data": "pyproject.toml"}), "data pyproject.toml: give a folder"),
    ],
    ids=str,
)
def test_arguments_of_load(tiny_checkpoint, tiny_data, arguments, message):
    checkpoint, settings = (*arguments, {})[:2]
    with pytest.raises(UserError, match=message):
        load(tiny_checkpoint if checkpoint is None else checkpoint, **{"data": tiny_data, **settings})


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@EACH_FAMILY
def test_copies_translate_as_the_original(checkpoints, tiny_data, family):
    model = load(checkpoints[family], tiny_data)
    expected = model.translate(SENTENCES)
    for make_copy in (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), saved):
        assert make_copy(model).translate(SENTENCES) == expected


def test_several_threads(model, printed):
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: model.translate(SENTENCES), range(8))) == [printed] * 8


@LONG
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes(model, printed, method):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(model.translate, [SENTENCES] * 4)) == [printed] * 4


def test_a_checkpoint_is_loaded_without_drawing_initial_weights(checkpoints, tiny_data, monkeypatch):
    drawn = []
    monkeypatch.setattr(torch.nn.init, "orthogonal_", drawn.append)
    weights = load(checkpoints["deepatt"], tiny_data).models[0].state_dict()
    saved = torch.load(checkpoints["deepatt"])["model"]
    assert not drawn and all(weight.equal(saved[name]) for name, weight in weights.items())


@EACH_FAMILY
def test_alignments_of_a_model_that_was_loaded_without_attention(checkpoints, tiny_data, family):
    model = load(checkpoints[family], tiny_data)
    ((best, *_),) = model.generate([model.encode("ba de ga")], print_alignment="hard")
    assert best["attention"].shape == (4, len(best["tokens"])) and len(best["alignment"]) == len(best["tokens"]) - 1
    ((soft, *_),) = model.generate([model.encode("ba de ga")], print_alignment="soft")
    assert len(soft["alignment"]) == len(soft["tokens"]) and torch.equal(soft["tokens"], best["tokens"])
    assert not model.generate(model.encode("ba"))[0]["attention"].numel()


def test_fairseqs_own_search_for_alignments(model):
    generator = SequenceGeneratorWithAlignment(list(model.models), model.tgt_dict, beam_size=2)
    source = model.encode("ba de")[None]
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([source.size(1)])}}
    assert all(len(found["alignment"]) == len(found["tokens"]) - 1 for found in generator.generate(None, sample)[0])
