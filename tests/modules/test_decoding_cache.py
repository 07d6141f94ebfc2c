import pytest
import torch

from lwc_fairseq.modules.decoding_cache import SourceCache, TargetCache
from lwc_fairseq.modules.row_groups import group_rows


def test_group_rows():
    assert group_rows([0, 0, 0, 1, 1, 1], beam=1) == ([0, 1], 3)  # sentences repeated for a beam
    assert group_rows([2, 0, 0, 5, 3, 4], beam=3) == ([0, 1], 3)  # hypotheses reordered within theirs
    assert group_rows([5, 5, 3], beam=3) == ([1], 3)  # the first sentence is finished
    assert group_rows([0, 1, 2], beam=1) == ([0, 1, 2], 1)
    assert group_rows([3, 0, 1, 2], beam=2) == ([1, 0, 0, 1], 1)  # no order that a beam search makes
    assert group_rows([0, 1, 2, 3], beam=4) == ([0], 4)
    assert group_rows([], beam=4) == ([], 4)


def source_cache():
    keys = torch.randn(3, 2, 5, 4)
    return SourceCache((keys,), (keys + 1,), torch.zeros(3, 5, dtype=torch.bool))


def test_a_beam_shares_the_source():
    cache = source_cache()
    beams = cache.reorder(torch.arange(3).repeat_interleave(4))
    assert beams.beam == 4 and beams.keys[0] is cache.keys[0]
    permuted = beams.reorder(torch.tensor([3, 3, 0, 1, 4, 5, 6, 7, 11, 10, 9, 8]))
    assert permuted.keys[0] is cache.keys[0]
    fewer = permuted.reorder(torch.tensor([0, 1, 2, 3, 8, 8, 8, 8]))
    assert fewer.beam == 4 and torch.equal(fewer.keys[0], cache.keys[0][[0, 2]])
    assert torch.equal(fewer.values[0], cache.values[0][[0, 2]])


def test_any_order_is_followed():
    cache = source_cache().reorder(torch.arange(3).repeat_interleave(2))
    mixed = cache.reorder(torch.tensor([5, 0, 2, 1]))
    assert mixed.beam == 1 and torch.equal(mixed.keys[0], cache.keys[0][[2, 0, 1, 0]])


def held(cache, keys):
    """What each hypothesis finds of the keys in all slots, (R, t, H, d/H)."""
    keys = keys.unflatten(2, (-1, cache.beam))  # (S, H, t, slot, d/H)
    rows = [
        [keys[s, :, t, slot] for t, slot in enumerate(slots)]
        for s, sentence in enumerate(cache.slots.tolist())
        for slots in sentence
    ]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.mark.parametrize(
    "orders",
    [
        [[0, 1, 2, 3, 4, 5]] * 40,  # and it grows
        [[1, 1, 0, 3, 3, 5], [2, 0, 0, 5, 4, 3], [0, 1, 1, 4, 4, 4]],
        [[1, 1, 0, 3, 4, 5], [5, 3, 3], [2, 2, 1]],  # a sentence is finished
        [[1, 2, 0, 3, 4, 5], [5, 0, 3, 3], [1, 1, 0]],  # no order that a beam search makes
        [[1, 2, 0, 3, 4, 5], [0, 2, 4, 3], [1, 1, 3, 2]],  # fewer rows a sentence
        [[0, 3], [1, 1, 0, 0], [0, 1, 2, 2]],  # one, then two
    ],
)
def test_target_cache_is_what_copying_would_make(orders):
    """Two sentences, three hypotheses each; their keys are kept beside it, and copied in every step."""
    cache, copied = TargetCache(2, 2, 3, heads=2, head_dim=4, like=torch.zeros(())), torch.zeros(6, 0, 2, 4)
    for order in orders:
        rows = len(copied)
        new = torch.randn(2, 2, rows, 1, 2, 4)  # layer, keys or values, row, one token, head, d/H
        cache.reserve(1)
        for layer in range(2):
            _, values = cache.extend(layer, *new[layer])
        hidden = cache.hidden
        cache.advance(1)
        copied = torch.cat([copied, new[1, 1]], dim=1)
        assert torch.equal(held(cache, values), copied)
        seen = (~hidden).nonzero()  # sentence, row within it, slot
        assert (
            seen[:, 2].view(rows, -1).div(cache.beam, rounding_mode="floor").tolist()
            == [list(range(copied.size(1)))] * rows
        )
        assert (seen[:, 2] % cache.beam).tolist() == cache.slots.flatten().tolist()
        cache.reorder(torch.tensor(order))
        copied = copied[order]
    assert cache.length == len(orders)


def test_both_caches_group_rows_alike():
    for beam, order in ((1, [0, 0, 0, 1, 1, 1]), (4, [0, 1, 4, 5]), (1, [1, 1]), (3, [5, 0, 2, 1]), (2, [2, 3])):
        source = source_cache().reorder(torch.arange(2).repeat_interleave(beam))
        target = TargetCache(1, 2, beam, heads=2, head_dim=4, like=torch.zeros(()))
        target.reserve(1)
        target.advance(1)
        target.reorder(torch.tensor(order))
        source = source.reorder(torch.tensor(order))
        assert (source.beam, len(source.padding_mask)) == (target.beam, target.memory.size(2)), order


def test_new_tokens_do_not_see_later_ones():
    cache = TargetCache(1, 1, 2, heads=1, head_dim=2, like=torch.zeros(()))
    cache.reserve(2)
    assert (~cache.hidden).int().tolist() == [[[1, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]]]
