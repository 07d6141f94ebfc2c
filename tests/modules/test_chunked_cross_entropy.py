"""The loss that is computed in chunks, and its gradients, equal those of fairseq."""

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from lwc_fairseq.modules import chunked_cross_entropy as module
from lwc_fairseq.modules.chunked_cross_entropy import chunked_cross_entropy

N, V, D = 70, 23, 5


def inputs(dtype=torch.float64, with_bias=True):
    generator = torch.Generator().manual_seed(1)
    sizes = [(N, D), (V, D), (V,)] if with_bias else [(N, D), (V, D)]
    drawn = [torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for size in sizes]
    target = torch.randint(0, V, (N,), generator=generator)
    return (*drawn, None)[:3], target


def plain(features, weight, bias, target, smoothing):
    """By fairseq's function, from all logits at once."""
    log_p = torch.nn.functional.linear(features, weight, bias).log_softmax(-1)
    return label_smoothed_nll_loss(log_p, target[:, None], smoothing)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("with_bias", [True, False])
def test_equals_the_loss_of_fairseq(monkeypatch, smoothing, with_bias):
    """Three chunks, the last one not full; the loss enters with a factor, as with a loss scale."""
    monkeypatch.setattr(module, "CHUNK", 1)
    tensors, target = inputs(with_bias=with_bias)
    wanted = [x for x in tensors if x is not None]
    expected = plain(*tensors, target, smoothing)
    found = chunked_cross_entropy(*tensors, target, smoothing)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12)
    theirs = torch.autograd.grad(3 * expected[0], wanted)
    ours = torch.autograd.grad(3 * found[0], wanted)
    for mine, its in zip(ours, theirs, strict=True):
        assert torch.allclose(mine, its, rtol=1e-10, atol=1e-12)
    assert not found[1].requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_sums_in_single(dtype):
    """Gradients that float16 would lose: a loss scale of 2^10, rows whose target is all but certain."""
    tensors, target = inputs(dtype)
    exact, _ = inputs()
    loss, nll = chunked_cross_entropy(*tensors, target, 0.1)
    assert loss.dtype == nll.dtype == torch.float32
    assert loss.item() == pytest.approx(plain(*exact, target, 0.1)[0].item(), rel=2e-2)
    found = torch.autograd.grad(1024 * loss, tensors)
    expected = torch.autograd.grad(1024 * plain(*exact, target, 0.1)[0], exact)
    for mine, its in zip(found, expected, strict=True):
        assert mine.dtype == dtype
        assert (mine.double() - its).abs().max() < 3e-2 * its.abs().max()


def test_many_rows_of_one_type_do_not_overflow_float16():
    """Gradients of 2,000 equal targets and large features, whose sum float16 does not hold."""
    (features, weight, bias), _ = inputs(torch.float16)
    many = (20 * features.detach()).repeat(30, 1).requires_grad_()
    same = torch.full((len(many),), 3)
    loss, _ = chunked_cross_entropy(many, weight, bias, same, 0.1)
    found = torch.autograd.grad(1e-3 * loss, (many, weight, bias))
    exact = [x.detach().double().requires_grad_() for x in (many, weight, bias)]
    expected = torch.autograd.grad(1e-3 * plain(*exact, same, 0.1)[0], exact)
    for mine, its in zip(found, expected, strict=True):
        assert (mine.double() - its).abs().max() < 3e-2 * its.abs().max()


def test_autocast_uses_its_precision():
    tensors, target = inputs(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = chunked_cross_entropy(*tensors, target, 0.0)
    loss.backward()
    exact, _ = inputs()
    assert loss.item() != pytest.approx(plain(*exact, target, 0.0)[0].item(), rel=1e-6)
    assert loss.item() == pytest.approx(plain(*exact, target, 0.0)[0].item(), rel=2e-2)
    assert all(x.grad.dtype == torch.float32 for x in tensors)


def test_nothing_to_do():
    """Without rows, and without gradients."""
    (features, weight, bias), target = inputs()
    loss, nll = chunked_cross_entropy(features[:0], weight, bias, target[:0], 0.1)
    loss.backward()
    assert loss == nll == 0 and not weight.grad.any()
    with torch.no_grad():
        loss, _ = chunked_cross_entropy(features, weight, bias, target, 0.1)
    assert torch.allclose(loss, plain(features, weight, bias, target, 0.1)[0])
