"""The patches work with tasks and models that are not of this project: speech, several languages, language models."""

import logging
import sys
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from importlib.util import spec_from_file_location
from types import SimpleNamespace

import fairseq
import numpy as np
import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder
from fairseq.dataclass import FairseqDataclass
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.scoring.meteor import MeteorScorer
from fairseq.tasks import setup_task
from fairseq.tasks.fairseq_task import FairseqTask, LegacyFairseqTask
from fairseq.tasks.translation import TranslationConfig
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from conftest import make_dictionary, refused, run_python
from lwc_fairseq_compat import UserError, processes
from lwc_fairseq_compat.batches import name_batch_with_bad_gradients
from lwc_fairseq_compat.checkpoints import check_weights, refused_when_read
from lwc_fairseq_compat.commands import check_data_and_languages
from lwc_fairseq_compat.data import advice, why_missing
from lwc_fairseq_compat.hooks import Finder
from lwc_fairseq_compat.options import parse_words
from lwc_fairseq_compat.saving import patience
from lwc_fairseq_compat.scoring import is_score_command

BATCHES = {
    "text": {"net_input": {"src_tokens": torch.zeros(2, 7)}, "ntokens": 5, "id": torch.arange(2)},
    "waves": {"net_input": {"source": torch.zeros(2, 7)}, "ntokens": 5, "id": torch.arange(2)},
    "features": {"net_input": {"src_tokens": torch.zeros(2, 7, 3)}, "ntokens": 5, "id": torch.arange(2)},
    "languages": {"de-en": {"net_input": {"src_tokens": torch.zeros(2, 7)}, "ntokens": 5}},
    "none": None,
}


def out_of_memory(sample) -> RuntimeError:
    """The error of a step of the trainer, in whose frame the batch is."""
    try:
        raise RuntimeError("out of memory")
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_that_is_too_large_has_its_size_logged_if_it_is_of_text(kind, caplog):
    with caplog.at_level(logging.WARNING, "fairseq.trainer"):
        Trainer._log_oom(SimpleNamespace(), out_of_memory(BATCHES[kind]))
    logged = [record.message for record in caplog.records if "the batch has" in record.message]
    assert [message[:55] for message in logged] == ["the batch has 2 sentences of 7 source tokens at most an"] * (
        kind == "text"
    )


@pytest.mark.parametrize(
    ("kind", "error", "reason"),
    [
        ("waves", UserError, "gradients are Nan/Inf"),
        ("languages", FloatingPointError, "gradients are Nan/Inf"),
        ("waves", FloatingPointError, "gradients are inconsistent between workers"),
    ],
)
def test_bad_gradients(kind, error, reason):
    def train_step(self, samples):
        raise FloatingPointError(reason)

    with pytest.raises(
        error, match="Its batch is the training sentences 0, 1 " if error is UserError else f"^{reason}"
    ):
        name_batch_with_bad_gradients(train_step, SimpleNamespace(get_num_updates=lambda: 3), [None, BATCHES[kind]])


class LocalsOfPython313(dict):
    """As `f_locals` of a function there."""

    def keys(self):
        return list(super().keys())


def test_the_command_that_scores_is_recognized():
    args = SimpleNamespace(sentence_bleu=False)
    assert is_score_command(LocalsOfPython313(args=args, fdsys=None, fdref=None, more=1))
    assert not is_score_command(LocalsOfPython313(args=args))


def test_checkpoints_may_hold_dictionaries():
    assert refused_when_read({"task_state": {"target_dictionary": make_dictionary(7)}}) is None


def test_checkpoints_may_hold_averages_of_weights_as_those_of_data2vec():
    check_weights({"model": {"_ema": {"weight": torch.zeros(2)}, "weight": torch.zeros(2)}})
    with pytest.raises(TypeError, match="not a dictionary of real tensors"):
        check_weights({"model": {"_ema": {"weight": torch.zeros(2)}, "weight": "none"}})


def test_programs_with_the_parser_of_a_command_have_its_names_and_rules_of_their_own():
    words = ["data", "--path", "m.pt", "--sacrebleu", "--num-shards", "3", "--shard-id", "1", "--lm-weight", "2"]
    read = options.parse_args_and_arch(options.get_generation_parser(), [*words, "--prefix-size=-1"])
    assert (read.num_shards, read.shard_id, read.sacrebleu, read.lm_weight, read.prefix_size) == (3, 1, True, 2, -1)
    with pytest.raises(UserError, match=r"--lm-weight 2\.0 needs"):
        parse_words("fairseq-generate", words)


def test_a_task_that_builds_its_criterion_by_itself_computes_losses():
    task = SimpleNamespace(target_dictionary=None)
    LegacyFairseqTask.build_criterion(task, SimpleNamespace(criterion="cross_entropy", sentence_avg=False))
    assert task.computes_losses


class OwnDictionaries(FairseqTask):
    """As HuBERT's task, it keeps its dictionaries in the checkpoint."""

    def __init__(self):
        super().__init__(SimpleNamespace())
        self.dicts = OrderedDict(de=make_dictionary(7))
        self.state.add_factory("dictionaries", lambda: pytest.fail("read the files of the labels"))


def test_a_task_keeps_dictionaries_of_its_own():
    task, kept = OwnDictionaries(), [make_dictionary(9)]
    task.load_state_dict({"dictionaries": kept})
    assert task.state.dictionaries is kept and task.state_dict()["dictionaries"] is kept


def test_words_are_kept_for_other_tasks():
    task = FairseqTask(SimpleNamespace())
    task.dicts = OrderedDict(de=make_dictionary(5))
    state = task.state_dict()
    assert state == {"dictionaries": {"dicts.de": "<s>\n<pad>\n</s>\n<unk>\nw0"}}
    task.load_state_dict(state)
    task.dicts["de"] = make_dictionary(6)
    with pytest.raises(UserError, match=r"word 2 is 'w1', not missing"):
        task.load_state_dict(state)


def test_a_task_of_a_configuration_that_is_not_complete(tiny_data):
    cfg = OmegaConf.structured(
        TranslationConfig(_name="translation", data=str(tiny_data), source_lang="de", target_lang="en")
    )
    assert isinstance(setup_task(cfg).source_dictionary, Dictionary)


@pytest.mark.parametrize(
    ("task", "is_refused"),
    [({"_name": "dummy_lm", "dict_size": 9}, False), ({"_name": "translation", "data": "???"}, True)],
)
def test_only_tasks_with_data_need_data(task, is_refused):
    cfg = OmegaConf.create({"task": task})
    if is_refused:
        with pytest.raises(UserError, match=r"^task.data is missing"):
            check_data_and_languages(cfg)
    else:
        check_data_and_languages(cfg)


def test_configurations_of_plugins_may_be_defaults():
    @dataclass
    class Part(FairseqDataclass):
        size: int = 1

    @dataclass
    class Whole(FairseqDataclass):
        part: Part = Part()  # noqa: RUF009  (as in fairseq)

    assert Whole().part.size == 1


def test_patience_of_training_that_runs_as_a_module(monkeypatch):
    function = patience()
    assert function is sys.modules["fairseq_cli.train"].should_stop_early
    main = SimpleNamespace(__spec__=SimpleNamespace(name="fairseq_cli.train"), should_stop_early=object())
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert patience() is main.should_stop_early


def test_fairseq_that_another_finder_finds(monkeypatch):
    """As after `pip install --editable` of a checkout of fairseq."""
    finder, spec = Finder([]), spec_from_file_location("fairseq", fairseq.__file__)
    editable = SimpleNamespace(find_spec=lambda name, path, target: spec)
    monkeypatch.setattr(sys, "meta_path", [finder, editable])
    assert finder.find_spec("fairseq") is spec and finder.find_spec("torch") is None
    assert spec.loader.exec_module.__name__ == "run_and_patch"


def test_places_in_files_of_more_than_2_gib(tmp_path):
    """`fairseq-preprocess --workers` adds the lengths that a worker has written, which NumPy reads as 32 bits."""
    builder = MMapIndexedDatasetBuilder(str(tmp_path / "text.bin"), dtype=np.uint16)
    builder._sizes = [2**29, *np.full(4, 2**29, dtype=np.int32)]
    builder.finalize(str(tmp_path / "text.idx"))
    index = MMapIndexedDataset.Index(str(tmp_path / "text.idx"))
    assert index.sizes.tolist() == [2**29] * 5
    assert index._pointers.tolist() == [i * 2**30 for i in range(5)]


def test_a_batch_that_is_validated_again_asks_no_other_process(monkeypatch):
    """The others do not validate theirs again, so they would not answer."""
    asked = []
    monkeypatch.setattr(processes, "is_unsaved", lambda trainer: True)
    monkeypatch.setattr(processes.termination, "is_requested", lambda step: asked.append(step))
    trainer = SimpleNamespace()
    for given in ({}, {"raise_oom": True}, {}):
        processes.save_during_validation(lambda self, sample, **given: None, trainer, None, **given)
    assert asked == [0, 1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_processes_for_gpus_that_are_not_there(tiny_data, tmp_path):
    start = ("--cpu", "--distributed-init-method", "tcp://localhost:29777", "--distributed-world-size", "1")
    given = ("--arch", "transformer", "--optimizer", "sgd", "--lr", "1", "--max-tokens", "99", "--save-dir", tmp_path)
    message = refused("fairseq-train", tiny_data, *given, *start)
    assert "--distributed-init-method starts a process for each GPU, and there is none" in message


def test_the_process_of_a_gpu_prints_one_line(tmp_path):
    """A CPU in the place of the GPU, for which fairseq starts a process."""
    script, data = tmp_path / "train.py", tmp_path / "data"
    script.write_text("""if __name__ == "__main__":
    import sys, torch
    torch.cuda.device_count = lambda: 1
    from fairseq_cli.train import cli_main
    sys.argv[0] = "fairseq-train"
    cli_main()
""")
    data.mkdir()
    given = ("--arch", "transformer", "--optimizer", "sgd", "--lr", "1", "--max-tokens", "99", "--save-dir", tmp_path)
    start = ("--cpu", "--distributed-init-method", f"file://{tmp_path / 'store'}", "--distributed-world-size", "1")
    done = run_python(script, data, "-s", "de", "-t", "en", *given, *start, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("fairseq-train: error: dictionary not found: ")


def test_the_launcher_of_pytorch_names_the_rank_with_a_hyphen():
    given = ("data", "--arch", "transformer", "--optimizer", "sgd", "--lr", "1", "--max-tokens", "9")
    for option in ("--local-rank=3", "--local_rank=3"):
        assert parse_words("fairseq-train", [*given, option]).device_id == 3


@pytest.mark.parametrize("task", ["denoising", "multilingual_denoising"])
def test_tasks_and_models_with_the_same_options(task):
    given = ("data", "--arch", "bart_base", "--optimizer", "sgd", "--lr", "1", "--max-tokens", "9")
    options = parse_words("fairseq-train", [*given, "--task", task, "--max-source-positions", "77"])
    assert options.max_source_positions == 77 and options.mask_length == "subword"


def test_the_scale_of_losses_and_its_window_are_those_of_the_options(monkeypatch):
    monkeypatch.setattr(torch.cuda.amp, "GradScaler", partial(torch.amp.GradScaler, "cpu"))
    common = {"fp16_init_scale": 128, "amp_init_scale": 64, "amp_scale_window": 2000, "min_loss_scale": 1e-4}
    cfg = OmegaConf.create({"common": common, "optimizer": None})
    scaler = AMPOptimizer(cfg, [], None)._grad_scaler
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (64, 2000)
    common["amp_scale_window"] = None
    scaler = AMPOptimizer(OmegaConf.create({"common": common, "optimizer": None}), [], None)._grad_scaler
    assert (scaler.get_scale(), scaler.get_growth_interval()) == (64, torch.amp.GradScaler("cpu").get_growth_interval())


def test_meteor_gets_words():
    scorer = MeteorScorer.__new__(MeteorScorer)
    scorer.ref, scorer.pred = [], []
    scorer.add_string("two dogs run", "dogs run")
    assert (scorer.ref, scorer.pred) == ([["two", "dogs", "run"]], [["dogs", "run"]])


@pytest.mark.parametrize(
    ("command", "limits", "expected"),
    [
        ("fairseq-eval-lm", 32, "add --tokens-per-sample 32"),
        ("fairseq-hydra-train", 512, "raise --max-positions or --tokens-per-sample"),
        ("fairseq-train", 512, "raise --max-positions or --tokens-per-sample"),
        ("train.py", (9, 9), "The limits are those of the model"),
        ("train.py", (12, 12), "raise --max-source-positions and --max-target-positions"),
    ],
)
def test_advice_on_long_sentences(monkeypatch, command, limits, expected):
    monkeypatch.setattr(sys, "argv", [command])
    assert expected in advice(SimpleNamespace(max_positions=lambda: (12, 12)), limits)


def test_data_in_another_binary_format(tmp_path):
    for name in ("train.de-en.de.idx", "train.de-en.de.bin"):
        (tmp_path / name).touch()
    assert why_missing(tmp_path, "train", "huffman").endswith(
        "another format than --dataset-impl huffman: leave the option out"
    )
