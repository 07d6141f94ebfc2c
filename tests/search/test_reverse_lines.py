"""The lines `R-` of --print-reverse."""

from types import SimpleNamespace

import pytest
import torch

from conftest import EOS, PAD, make_abd, make_deepatt, make_dictionary
from lwc_fairseq.tasks.concat_translation import reverse_lines

SOURCES = torch.tensor([[5, 6, EOS], [PAD, PAD, EOS], [7, 8, EOS]])


def lines(sample, reverse_target=False):
    """Of an ensemble whose second model finds that the reverse of every sentence is w1 w2 w3."""
    model, dictionary = make_abd(types=(17, 17)), make_dictionary(17)
    found = torch.tensor([[5, 6, 7, EOS, PAD]] * len(SOURCES))
    model.reverse_translations = lambda src_tokens: found
    models = [make_deepatt(types=(17, 17)), SimpleNamespace(module=model)]  # as in several processes
    return reverse_lines(models, sample, (dictionary, dictionary), reverse_target)


def test_in_reading_order_with_numbers():
    sample = {"net_input": {"src_tokens": SOURCES}, "id": torch.tensor([4, 2, 9])}
    assert lines(sample) == ["R-4\tw3 w2 w1", "R-2\t", "R-9\tw3 w2 w1"]
    assert lines(sample, reverse_target=True) == ["R-4\tw1 w2 w3", "R-2\t", "R-9\tw1 w2 w3"]


def test_without_numbers():
    assert lines({"net_input": {"src_tokens": SOURCES}})[0] == "R-\tw3 w2 w1"


def test_a_model_without_reverse_translation_is_refused():
    dictionary = make_dictionary(17)
    with pytest.raises(ValueError, match="--print-reverse: these models have no reverse translation; only abd"):
        reverse_lines([make_deepatt()], {"net_input": {"src_tokens": SOURCES}}, (dictionary, dictionary), False)
