import torch

from lwc_fairseq.modules.mixed_attention import SourceCache, TargetCache


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


def test_both_caches_group_rows_alike():
    for beam, order in ((1, [0, 0, 0, 1, 1, 1]), (4, [0, 1, 4, 5]), (1, [1, 1]), (3, [5, 0, 2, 1]), (2, [2, 3])):
        source = source_cache().reorder(torch.arange(2).repeat_interleave(beam))
        target = TargetCache(source, rows=2 * beam)
        target.reserve(1)
        target.advance()
        target.reorder(torch.tensor(order))
        source = source.reorder(torch.tensor(order))
        assert (source.beam, len(source.padding_mask)) == (target.beam, target.memory.size(2)), order
