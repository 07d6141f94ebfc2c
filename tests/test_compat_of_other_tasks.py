"""The patches work with tasks and models that are not of this project: speech, several languages, language models."""

import logging
import sys
from collections import OrderedDict
from dataclasses import dataclass
from importlib.util import spec_from_file_location
from types import SimpleNamespace

import fairseq
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import setup_task
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.translation import TranslationConfig
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from conftest import make_dictionary
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.batches import name_batch_with_bad_gradients
from lwc_fairseq_compat.checkpoints import refused_when_read
from lwc_fairseq_compat.commands import check_data_and_languages
from lwc_fairseq_compat.hooks import Finder
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


@pytest.mark.parametrize(("kind", "error"), [("waves", UserError), ("languages", FloatingPointError)])
def test_bad_gradients(kind, error):
    def train_step(self, samples):
        raise FloatingPointError("gradients are Nan/Inf")

    with pytest.raises(error, match="Its batch is the training sentences 0, 1 " if kind == "waves" else "^gradients"):
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
