import pytest
import torch

from conftest import PAD, random_batch, require_flash, run
from lwc_fairseq.data.packing import pack
from lwc_fairseq.modules import mixed_attention
from lwc_fairseq.modules.mixed_attention import (
    FlashAttention,
    MixedAttention,
    PaddedAttention,
    SourceCache,
    TargetCache,
    attend_packed,
    mixed_attention_mask,
    step_mask,
    step_masks,
)

LENGTHS = [(3, 2), (1, 4), (5, 1)]


def packed(lengths=LENGTHS):
    return pack(*random_batch(lengths), PAD)


def padded(packing):
    return PaddedAttention(packing, mixed_attention_mask(packing))


def test_mask_of_two_source_and_three_target_tokens():
    mask = mixed_attention_mask(pack(*random_batch([(2, 3)]), PAD))[0].int().tolist()
    assert mask == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (None, [[1, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]]),
        (1, [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    ],
)
def test_new_tokens_do_not_see_later_ones(window, expected):
    """Two hypotheses of a sentence of one word, with two new tokens each; the slots of a token are side by side."""
    keys = [torch.zeros(1, 1, 1, 2)]
    source = SourceCache(keys, keys, torch.tensor([[False]]))
    target = TargetCache(source, rows=2)
    target.reserve(2)
    mask = step_mask(source, target, window)[0, 0].eq(0).int()
    assert mask[:, 0].all() and mask[:, 1:].tolist() == expected


@pytest.mark.parametrize("tokens_before", [0, 1, 4])
def test_masks_of_a_single_new_token_are_those_of_each_window(tokens_before):
    keys = [torch.zeros(2, 1, 3, 2)]
    source = SourceCache(keys, keys, torch.tensor([[False, False, False], [True, False, False]]))
    target = TargetCache(source, rows=4)
    for _ in range(tokens_before):
        target.reserve(1)
        target.advance()
        target.reorder_hypotheses(torch.tensor([1, 1, 2, 2]))  # both hypotheses share the tokens so far
    target.reserve(1)
    masks = step_masks(source, target, [None, 1, 2, 3, 4, 9, 2])
    assert set(masks) == {None, 1, 2, 3, 4, 9}
    for window, mask in masks.items():
        assert torch.equal(mask, step_mask(source, target, window))


def attention_by_loops(qkv, lengths):
    """Eq. 3 sentence by sentence, head by head, token by token."""
    context = torch.zeros_like(qkv[:, 0])
    start = 0
    for n, m in lengths:
        for head in range(qkv.size(2)):
            query, key, value = qkv[start : start + n + m, :, head].unbind(1)
            for i in range(n + m):
                seen = [j for j in range(n + m) if j < n or j <= i]
                scores = torch.stack([query[i] @ key[j] for j in seen]) / query.size(-1) ** 0.5
                context[start + i, head] = scores.softmax(0) @ value[seen]
        start += n + m
    return context


def test_padded_attention_equals_loops():
    qkv = torch.randn(16, 3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    context = padded(packed())(qkv)
    assert torch.allclose(context, attention_by_loops(qkv, LENGTHS), atol=1e-12)


def test_flash_attention_composes_eq_3_from_variable_length_calls(monkeypatch):
    """A CPU has no such kernel. A plain one in its place shows that the two calls together compute eq. 3."""

    def varlen_by_loops(query, key, value, offsets, key_offsets, length, key_length, window_size):
        assert torch.equal(offsets, key_offsets) and offsets.dtype == torch.int32
        assert length == key_length == offsets.diff().max()
        out = torch.empty_like(query)
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            q, k, v = (x[start:end].transpose(0, 1) for x in (query, key, value))
            causal = window_size == (-1, 0)
            out[start:end] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(0, 1)
        return out

    monkeypatch.setattr(mixed_attention, "flash_kernel", lambda: varlen_by_loops)
    qkv = torch.randn(16, 3, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(FlashAttention(packed())(qkv), attention_by_loops(qkv, LENGTHS), atol=1e-12)
    src, _ = random_batch(LENGTHS)
    sources, alone = pack(src, src[:, :0], PAD), qkv[:9]
    assert torch.allclose(FlashAttention(sources)(alone), padded(sources)(alone), atol=1e-12)


def test_no_command_waits_for_the_import_of_the_flash_kernel():
    program = "import sys, lwc_fairseq.modules.mixed_attention; sys.exit('torch.nn.attention.varlen' in sys.modules)"
    assert run("bash", "-c", f'python -c "{program}"').returncode == 0  # not where the tests have imported it


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_flash_path_equals_mask_path(dtype):
    require_flash()
    lengths = [(30, 17), (1, 40), (64, 1), (9, 9)]
    src, prev = random_batch(lengths)
    packing = pack(src.cuda(), prev.cuda(), PAD)
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(sum(map(sum, lengths)), 3, 4, 64, generator=generator).to("cuda", dtype).requires_grad_()
    flash, masked = attend_packed(packing, qkv, 64, 0.0), padded(packing)
    assert isinstance(flash, FlashAttention)
    grad = torch.randn(len(qkv), 4, 64, generator=generator).to("cuda", dtype)
    outcomes = [(a := attend(qkv), torch.autograd.grad(a, qkv, grad)[0]) for attend in (flash, masked)]
    for ours, theirs in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, theirs, atol=3e-2 if dtype == torch.bfloat16 else 4e-3, rtol=2**-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_on_a_cpu(dtype):
    """Computed in single precision and returned in the dtype of the input, also under autocast."""
    qkv = torch.randn(16, 3, 2, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    with torch.autocast("cpu", torch.bfloat16):
        found = padded(packed())(qkv)
    assert found.dtype == dtype and torch.equal(found, padded(packed())(qkv.float()).to(dtype))


def test_attention_dropout_drops_and_keeps_the_mask_path():
    packing = packed()
    qkv = torch.randn(16, 3, 2, 4)
    dropped = attend_packed(packing, qkv, 4, 0.5)
    assert isinstance(dropped, PaddedAttention)
    assert not torch.equal(dropped(qkv), attend_packed(packing, qkv, 4, 0.0)(qkv))


def test_heads_share_one_projection_of_each_kind():
    attention = MixedAttention(embed_dim=8, heads=2)
    assert {name: tuple(p.shape) for name, p in attention.named_parameters()} == {
        "qkv.weight": (24, 8),
        "qkv.bias": (24,),
        "out.weight": (8, 8),
        "out.bias": (8,),
    }
    context = padded(packed())(attention.project(torch.randn(16, 8)))
    assert attention.combine(context).shape == (16, 8)
