"""torch's fused Adam as an optimizer of fairseq."""

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig

from lwc_fairseq.optim import FusedAdam, FusedAdamConfig, parse_betas

SETTINGS = {"adam_betas": "(0.8, 0.95)", "weight_decay": 0.1, "lr": [1e-2]}


def updated(kind, config, updates, saved=None, **settings):
    """Weights after some updates with known gradients, and the optimizer."""
    draw = torch.Generator().manual_seed(1)
    weights = [torch.nn.Parameter(torch.randn(shape, generator=draw)) for shape in ((3, 5), (7,))]
    optimizer = kind(config(**SETTINGS, **settings), weights)
    for number in range(updates):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=draw)
        if saved and number < saved[0]:
            continue
        if saved and number == saved[0]:
            optimizer.load_state_dict(saved[2])
            for weight, value in zip(weights, saved[1], strict=True):
                weight.data = value
        optimizer.step()
    return [weight.detach().clone() for weight in weights], optimizer


def test_makes_the_updates_of_fairseqs():
    found, _ = updated(FusedAdam, FusedAdamConfig, 5, adam_eps=1e-12)
    expected, _ = updated(FairseqAdam, FairseqAdamConfig, 5, adam_eps=1e-12)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_goes_on_from_its_state():
    whole, _ = updated(FusedAdam, FusedAdamConfig, 6)
    half, optimizer = updated(FusedAdam, FusedAdamConfig, 3)
    resumed, _ = updated(FusedAdam, FusedAdamConfig, 6, saved=(3, half, optimizer.state_dict()))
    assert all(torch.equal(one, other) for one, other in zip(resumed, whole, strict=True))


def test_betas():
    assert parse_betas("(0.9, 0.98)") == parse_betas([0.9, 0.98]) == (0.9, 0.98)
    for wrong in ("0.9", "(0.9, 1.0)", "0.9 0.98", "(0.9, 'x')", "()"):
        with pytest.raises(ValueError, match="give two numbers in"):
            parse_betas(wrong)


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("factor", [0.25, torch.tensor(0.25)], ids=["number", "tensor"])
def test_gradients_are_scaled_and_clipped_as_by_fairseq(max_norm, factor):
    """Also if a parameter has no gradient."""
    found = []
    for kind in (FusedAdam, FairseqAdam):
        _, optimizer = updated(kind, FusedAdamConfig if kind is FusedAdam else FairseqAdamConfig, 1)
        weights = list(optimizer.params)
        draw = torch.Generator().manual_seed(3)
        weights[0].grad = torch.randn(weights[0].shape, generator=draw)
        weights[1].grad = None
        optimizer.multiply_grads(factor)
        found.append((optimizer.clip_grad_norm(max_norm), weights[0].grad))
    torch.testing.assert_close(*found)
