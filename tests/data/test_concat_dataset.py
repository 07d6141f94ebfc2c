import numpy as np
import pytest
import torch
from fairseq.data import LanguagePairDataset

from conftest import EOS, PAD, make_dictionary
from lwc_fairseq.data.concat_dataset import ConcatPairDataset
from lwc_fairseq.data.packing import pack

LENGTHS = [(9, 2), (3, 3), (2, 8), (4, 2), (3, 7)]


def make_pairs(shuffle=False, **settings):
    dictionary = make_dictionary(30)
    source = [torch.tensor([*range(4, 3 + n), EOS]) for n, _ in LENGTHS]
    target = [torch.tensor([*range(10, 9 + m), EOS]) for _, m in LENGTHS]
    sizes = np.array(LENGTHS)
    arguments = (source, sizes[:, 0], dictionary, target, sizes[:, 1], dictionary)
    return ConcatPairDataset(LanguagePairDataset(*arguments, shuffle=shuffle), PAD, **settings)


def test_orders_by_the_length_of_both_sides_and_then_by_the_target():
    assert (
        make_pairs().ordered_indices().tolist()
        == [3, 1, 4, 2, 0]
        == make_pairs(shuffle=True).ordered_indices().tolist()
    )


def test_max_tokens_bounds_source_plus_target():
    pairs = make_pairs()
    batches = pairs.batch_by_size(pairs.ordered_indices(), max_tokens=22)
    assert sorted(index for batch in batches for index in batch) == [0, 1, 2, 3, 4]
    for batch in batches:
        # a batch counts as rectangular: sentences times the longest
        assert len(batch) * max(sum(LENGTHS[index]) for index in batch) <= 22
    assert [len(batch) for batch in batches] == [2, 2, 1]


def test_a_pair_longer_than_max_tokens_is_named():
    pairs = make_pairs()
    with pytest.raises(ValueError, match=r"pair #0 has 11 source plus target tokens, more than --max-tokens 10: raise"):
        pairs.batch_by_size(pairs.ordered_indices(), max_tokens=10)


def test_pairs_alike_in_length_come_in_random_order():
    dictionary = make_dictionary(30)
    sentences, sizes = [torch.tensor([4, EOS])] * 40, np.full(40, 2)
    pairs = ConcatPairDataset(LanguagePairDataset(sentences, sizes, dictionary, sentences, sizes, dictionary), PAD)
    orders = [pairs.ordered_indices().tolist() for _ in range(2)]
    assert orders[0] != orders[1] and sorted(orders[0]) == list(range(40))


def test_batches_bring_their_packing():
    pairs = make_pairs(with_packing=True)
    batch = pairs.collater([pairs[i] for i in range(5)])
    inputs = batch["net_input"]
    expected = pack(inputs["src_tokens"], inputs["prev_output_tokens"], PAD)
    assert torch.equal(inputs["packing"]["tokens"], expected.tokens)
    assert inputs["packing"]["length"] == 11
    assert "packing" not in make_pairs().collater([pairs[0]])["net_input"]


def test_reversed_targets_keep_eos_last():
    pairs = make_pairs(reverse_target=True)
    assert pairs[1]["target"].tolist() == [11, 10, EOS]
    batch = pairs.collater([pairs[1]])
    assert batch["target"].tolist() == [[11, 10, EOS]]
    assert batch["net_input"]["prev_output_tokens"].tolist() == [[EOS, 11, 10]]
