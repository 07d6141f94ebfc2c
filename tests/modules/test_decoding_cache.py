import torch

from lwc_fairseq.modules.decoding_cache import SourceCache, TargetCache, group_rows


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


def test_target_cache_grows_and_reorders():
    cache = TargetCache(layers=2, rows=3, heads=2, head_dim=4, like=torch.zeros(()))
    new = torch.randn(40, 2, 2, 3, 1, 2, 4)  # step, layer, keys or values, row, one token, head, d/H
    for step in new:
        cache.reserve(1)
        for layer in range(2):
            keys, values = cache.extend(layer, *step[layer])
        cache.advance(1)
    assert cache.length == 40
    assert torch.equal(keys, new[:, 1, 0, :, 0]) and torch.equal(values, new[:, 1, 1, :, 0])
    cache.reorder(torch.tensor([2, 2]))
    cache.reserve(1)
    keys, _ = cache.extend(0, torch.zeros(2, 1, 2, 4), torch.zeros(2, 1, 2, 4))
    assert torch.equal(keys[:40], new[:, 0, 0, [2, 2], 0])
