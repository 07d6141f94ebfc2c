"""The words in reverse order, the end symbol still last, for everything that is stored per target token."""

from argparse import Namespace

import pytest
import torch
from fairseq.token_generation_constraints import pack_constraints
from omegaconf import OmegaConf

from conftest import EOS, PAD
from lwc_fairseq.data.reverse import (
    is_reversed,
    reverse_constraints,
    reverse_hypothesis,
    reverse_inputs,
    reverse_targets,
    reverse_words,
)


def test_the_words_of_one_sentence():
    assert reverse_words(torch.tensor([5, 6, 7, EOS]), EOS).tolist() == [7, 6, 5, EOS]
    assert reverse_words(torch.tensor([5, 6, 7]), EOS).tolist() == [7, 6, 5]
    assert reverse_words(torch.tensor([EOS]), EOS).tolist() == [EOS]
    assert reverse_words(torch.tensor([], dtype=torch.long), EOS).tolist() == []


def test_batches_with_padding_on_either_side():
    targets = [[5, 6, 7, EOS], [8, 9, EOS, PAD], [PAD, 8, 9, EOS], [PAD, PAD, PAD, EOS]]
    reversed_targets = [[7, 6, 5, EOS], [9, 8, EOS, PAD], [PAD, 9, 8, EOS], [PAD, PAD, PAD, EOS]]
    assert reverse_targets(torch.tensor(targets), PAD).tolist() == reversed_targets
    inputs = [[EOS, 5, 6, 7], [EOS, 8, 9, PAD], [PAD, EOS, 8, 9], [EOS, PAD, PAD, PAD]]
    reversed_inputs = [[EOS, 7, 6, 5], [EOS, 9, 8, PAD], [PAD, EOS, 9, 8], [EOS, PAD, PAD, PAD]]
    assert reverse_inputs(torch.tensor(inputs), PAD).tolist() == reversed_inputs


def hypothesis(**fields):
    return {
        "tokens": torch.tensor([5, 6, 7, EOS]),
        "score": torch.tensor(-1.0),
        "positional_scores": torch.tensor([-0.1, -0.2, -0.3, -0.4]),
        "attention": torch.arange(8.0).view(2, 4),  # source x target
        "alignment": torch.empty(0),
        **fields,
    }


def test_a_hypothesis_is_reversed_as_a_whole():
    found = reverse_hypothesis(hypothesis(), EOS)
    assert found["tokens"].tolist() == [7, 6, 5, EOS]
    assert torch.equal(found["positional_scores"], torch.tensor([-0.3, -0.2, -0.1, -0.4]))
    assert found["attention"].tolist() == [[2, 1, 0, 3], [6, 5, 4, 7]]
    assert found["score"] == -1

    hard = reverse_hypothesis(hypothesis(alignment=[(1, 0), (0, 1), (1, 2)]), EOS)
    assert hard["alignment"] == [(1, 0), (0, 1), (1, 2)]  # by target word, as fairseq's --replace-unk reads them
    soft = reverse_hypothesis(hypothesis(alignment=[["0.1"], ["0.2"], ["0.3"], ["1.0"]]), EOS)
    assert soft["alignment"] == [["0.3"], ["0.2"], ["0.1"], ["1.0"]]
    assert reverse_hypothesis(hypothesis(attention=torch.empty(0)), EOS)["attention"].numel() == 0
    assert reverse_hypothesis(hypothesis(attention=None), EOS)["attention"] is None


def test_constraints_are_reversed_as_a_list_and_phrase_by_phrase():
    packed = pack_constraints([[torch.tensor([4, 5, 6]), torch.tensor([7])], []])
    expected = pack_constraints([[torch.tensor([7]), torch.tensor([6, 5, 4])], []])
    assert torch.equal(reverse_constraints(packed), expected)


def test_reversing_twice_restores():
    soft = hypothesis(alignment=[["0.1"], ["0.2"], ["0.3"], ["1.0"]])
    twice = reverse_hypothesis(reverse_hypothesis(soft, EOS), EOS)
    for name, value in soft.items():
        assert torch.equal(twice[name], value) if isinstance(value, torch.Tensor) else twice[name] == value


@pytest.mark.parametrize("make", [lambda settings: Namespace(**settings), OmegaConf.create])
def test_the_direction_of_a_task(make):
    assert is_reversed(make({"reverse_target": True}))
    assert not is_reversed(make({"reverse_target": False}))
    assert not is_reversed(make({"source_lang": "de"}))
    assert not is_reversed(None)
