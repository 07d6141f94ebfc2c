import pytest
import torch

from lwc_fairseq.modules.mixed_attention import SourceCache, TargetCache


def held(cache, keys):
    """The keys of each hypothesis, taken from all slots, (R, t, H, d/H)."""
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
        [[1, 2, 0, 3, 4, 5], [5, 0, 3, 3], [1, 1, 0]],  # an order that no beam search makes
        [[1, 2, 0, 3, 4, 5], [0, 2, 4, 3], [1, 1, 3, 2]],  # fewer rows a sentence
        [[0, 3], [1, 1, 0, 0], [0, 1, 2, 2]],  # one, then two
    ],
)
def test_target_cache_is_what_copying_would_make(orders):
    """A cache of two sentences with three hypotheses each, and a tensor of keys that is copied in every step."""
    keys = (torch.zeros(2, 2, 5, 4),) * 2  # of two layers with two heads of width 4
    source = SourceCache(keys, keys, padding_mask=torch.zeros(2, 5, dtype=torch.bool))
    cache, copied = TargetCache(source, rows=6), torch.zeros(6, 0, 2, 4)
    for order in orders:
        rows = len(copied)
        new = torch.randn(2, rows, 1, 2, 2, 4)  # layer, row, one token, keys or values, head, d/H
        cache.reserve(1)
        for layer in range(2):
            _, values = cache.extend(layer, new[layer])
        others = cache.others
        cache.advance()
        copied = torch.cat([copied, new[1, :, :, 1]], dim=1)
        assert torch.equal(held(cache, values), copied)
        _, _, token, slot = (~others).nonzero().unbind(1)
        assert token.view(rows, -1).tolist() == [list(range(copied.size(1)))] * rows
        assert slot.tolist() == cache.slots.flatten().tolist()
        cache.reorder(torch.tensor(order))
        copied = copied[order]
    assert cache.length == len(orders)
