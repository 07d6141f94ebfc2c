"""Half precision in fairseq's optimizers, tried on a CPU."""

from argparse import Namespace

import pytest
import torch
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer, MemoryEfficientFP16Optimizer
from fairseq.optim.sgd import SGD
from omegaconf import OmegaConf

from lwc_fairseq.optim import FusedAdam, FusedAdamConfig
from lwc_fairseq_compat import UserError


def parameters(dtype=torch.half):
    draw = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, generator=draw).to(dtype)) for shape in ((3, 2), (5,), (1, 4))]


def test_amp_unscales_gradients_once():
    """An update by SGD is that of single precision; fairseq's own is too small by the scale."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = AMPOptimizer.__new__(AMPOptimizer)
    optimizer.fp32_optimizer = SGD(Namespace(lr=[0.5], momentum=0.0, weight_decay=0.0), [weight])
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer.backward((weight * torch.tensor([1.0, 2.0, 3.0])).sum())
    optimizer.clip_grad_norm(0.0)
    optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([0.5, 0.0, -0.5]))


def flat_optimizer(own):
    """An optimizer of fairseq with a flat copy of the parameters, as on the device None, which is the CPU."""
    optimizer = FP16Optimizer.__new__(FP16Optimizer)
    optimizer.fp16_params, optimizer._needs_sync = own, True
    flat = torch.nn.Parameter(torch.randn(sum(one.numel() for one in own)))
    flat.grad = torch.full_like(flat, 7.0)
    optimizer.fp32_params = {None: flat}
    return optimizer


@pytest.mark.parametrize("without_gradient", [None, 1])
def test_gradients_are_copied_as_by_fairseq(without_gradient):
    copies = []
    for sync in (FP16Optimizer._sync_fp16_grads_to_fp32, FP16Optimizer._sync_fp16_grads_to_fp32.__wrapped__):
        own = parameters()
        for number, one in enumerate(own):
            one.grad = None if number == without_gradient else (one * 3).detach()
        optimizer = flat_optimizer(own)
        sync(optimizer)
        assert not optimizer._needs_sync
        copies.append(optimizer.fp32_params[None].grad)
    assert torch.equal(*copies)


def test_parameters_are_copied_back_as_by_fairseq():
    ours, theirs = parameters(), parameters()
    one, other = flat_optimizer(ours), flat_optimizer(theirs)
    other.fp32_params = one.fp32_params
    one._sync_fp32_params_to_fp16()
    FP16Optimizer._sync_fp32_params_to_fp16.__wrapped__(other)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], parameters()[0])


def test_an_optimizer_without_memory_efficient_updates_is_named():
    own = parameters()
    adam = FusedAdam(FusedAdamConfig(lr=[1e-3]), own)
    cfg = OmegaConf.create({"optimizer": {"_name": "fused_adam"}, "common": {"bf16": False}})
    with pytest.raises(UserError, match="--memory-efficient-fp16 does not work with --optimizer fused_adam"):
        MemoryEfficientFP16Optimizer(cfg, own, adam)
