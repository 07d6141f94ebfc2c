"""RMSprop of Graves (2013), against its equations."""

import copy
import math

import pytest
import torch

from lwc_fairseq.optim import CenteredRMSprop

SETTINGS = {"lr": 0.03, "rho": 0.9, "eps": 1e-3}


def by_hand(weight: float, gradients: list[float], lr, rho, eps, momentum=0.0, weight_decay=0.0) -> float:
    """One weight after these gradients: eq. 38 to 41, number by number."""
    v = m = step = 0.0
    for g in gradients:
        g += weight_decay * weight
        v = rho * v + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        step = momentum * step - lr * g / math.sqrt(v - m**2 + eps)
        weight += step
    return weight


@pytest.mark.parametrize("more", [{}, {"momentum": 0.5}, {"weight_decay": 0.1}], ids=str)
def test_equals_the_equations(more):
    draw = torch.Generator().manual_seed(1)
    start, gradients = torch.randn(3, 2, generator=draw), torch.randn(6, 3, 2, generator=draw)
    start, gradients = start.double(), gradients.double()
    weight = torch.nn.Parameter(start.clone())
    optimizer = CenteredRMSprop([weight], **SETTINGS, **more)
    for gradient in gradients:
        weight.grad = gradient.clone()
        optimizer.step()
    for i, found in enumerate(weight.flatten().tolist()):
        rows = gradients.flatten(1)[:, i].tolist()
        assert found == pytest.approx(by_hand(start.flatten()[i].item(), rows, **SETTINGS, **more), rel=1e-12)


def test_goes_on_from_its_state():
    weight, gradient = torch.nn.Parameter(torch.ones(2)), torch.tensor([0.1, -2.0])
    optimizer = CenteredRMSprop([weight], **SETTINGS)
    for _ in range(2):
        weight.grad = gradient.clone()
        optimizer.step()
    other = torch.nn.Parameter(weight.detach().clone())
    resumed = CenteredRMSprop([other], **SETTINGS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for one, its in ((weight, optimizer), (other, resumed)):
        one.grad = gradient.clone()
        its.step()
    assert torch.equal(weight, other)
