"""Optimizers: Adam with torch's fused kernels, and the RMSprop of Graves."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor

from lwc_fairseq_compat.options import parse_betas


class TorchOptimizer(FairseqOptimizer):
    """An optimizer of torch that updates each element independently. A subclass defines `make` and its arguments,
    `optimizer_config`.

    It scales and clips the gradients of all parameters together. On a GPU, fairseq's own methods launch a kernel or
    two for each parameter. With --amp, fairseq scales by its own method.
    """

    supports_flat_params = True  # elements are updated independently, so --fp16 may flatten all parameters into one

    def __init__(self, cfg: FairseqDataclass, params):
        super().__init__(cfg)
        self._optimizer = self.make(params, **self.optimizer_config)

    def multiply_grads(self, c: float | Tensor) -> None:
        """Multiply all gradients by `c`."""
        gradients = self._gradients()
        if gradients:
            torch._foreach_mul_(gradients, c.to(gradients[0].device) if torch.is_tensor(c) else c)

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn=None) -> Tensor:
        """Scale the gradients so that their joint norm is at most `max_norm`, and return the norm before that.

        If `max_norm` is 0, nothing is scaled. With `aggregate_norm_fn`, which joins the norms of sharded parameters,
        fairseq's own method does the work.
        """
        if aggregate_norm_fn is not None:
            return super().clip_grad_norm(max_norm, aggregate_norm_fn)
        norm = torch.nn.utils.get_total_norm(self._gradients(), foreach=True)
        if max_norm > 0:
            torch.nn.utils.clip_grads_with_norm_(self.params, max_norm, norm, foreach=True)
        return norm

    def _gradients(self) -> list[Tensor]:
        return [parameter.grad for parameter in self.params if parameter.grad is not None]

    @property
    def first_lr(self) -> float:
        """The learning rate; if there is one for each epoch, the first one."""
        return self.cfg.lr if isinstance(self.cfg.lr, float) else self.cfg.lr[0]


@dataclass
class FusedAdamConfig(FairseqDataclass):
    """The options of fairseq's Adam."""

    adam_betas: Any = field(
        default=(0.9, 0.999),
        metadata={"help": "β₁ and β₂, the decays of the means of gradients and of their squares"},
    )
    adam_eps: float = field(default=1e-8, metadata={"help": "ε, added to the root of the mean of squared gradients"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay, decoupled from the gradient (AdamW)"})
    lr: list[float] = II("optimization.lr")  # noqa: RUF009


@register_optimizer("fused_adam", dataclass=FusedAdamConfig)
class FusedAdam(TorchOptimizer):
    """θ ← θ - lr · m̂ / (√v̂ + ε),  m̂ = m / (1 - β₁ᵗ),  v̂ = v / (1 - β₂ᵗ).

    Kingma and Ba, *Adam: A Method for Stochastic Optimization* (ICLR 2015), algorithm 1, with the weight decay of
    fairseq's Adam. fairseq's Adam adds ε to √v instead of √v̂. Otherwise both compute the same updates. The kernels
    update all parameters in one pass instead of several passes over each.

    Raises:
        UserError: --adam-betas are not two numbers in [0, 1).
    """

    def make(self, params, **config) -> torch.optim.Optimizer:
        return torch.optim.AdamW(params, fused=True, **config)

    @property
    def optimizer_config(self) -> dict:
        betas = parse_betas(self.cfg.adam_betas)
        return {"lr": self.first_lr, "betas": betas, "eps": self.cfg.adam_eps, "weight_decay": self.cfg.weight_decay}


@dataclass
class RMSpropConfig(FairseqDataclass):
    """The defaults are those of Zhang et al., *Asynchronous Bidirectional Decoding for NMT* (AAAI 2018)."""

    rmsprop_rho: float = field(
        default=0.95, metadata={"help": "ρ, the decay of the means of gradients and of their squares"}
    )
    rmsprop_eps: float = field(default=1e-4, metadata={"help": "ε, added to the variance of the gradients"})
    rmsprop_momentum: float = field(default=0.0, metadata={"help": "μ, the share of the last step that is added"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay, added to the gradient"})
    lr: list[float] = II("optimization.lr")  # noqa: RUF009


class CenteredRMSprop(torch.optim.Optimizer):
    """Graves, *Generating Sequences With Recurrent Neural Networks* (2013), eq. 38 to 41:

        v ← ρ v + (1 - ρ) g²,   m ← ρ m + (1 - ρ) g
        Δ ← μ Δ - lr · g / √(v - m² + ε),   θ ← θ + Δ

    Each gradient is divided by its standard deviation. `torch.optim.RMSprop(centered=True)` adds ε outside the root
    instead. For gradients near zero, its step is lr / ε times the gradient, while the step of this class is lr / √ε
    times the gradient.

    Args:
        lr, rho, eps, momentum: lr, ρ, ε, μ.
        weight_decay: the factor of θ in the term that is added to g.
    """

    def __init__(self, params, lr: float, rho: float, eps: float, momentum: float = 0.0, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, self.state[parameter], group)

    def _update(self, parameter: Tensor, state: dict, group: dict) -> None:
        for name in ("square_avg", "grad_avg", *(["step_before"] if group["momentum"] else [])):
            if name not in state:
                state[name] = torch.zeros_like(parameter)
        squares, mean = state["square_avg"], state["grad_avg"]
        assert parameter.grad is not None
        gradient = parameter.grad.add(parameter, alpha=group["weight_decay"])
        squares.lerp_(gradient.square(), 1 - group["rho"])
        mean.lerp_(gradient, 1 - group["rho"])
        variance = (squares - mean.square()).clamp_(min=0)  # rounding may make it negative
        deviation = variance.add_(group["eps"]).sqrt_()
        if group["momentum"]:
            step = state["step_before"].mul_(group["momentum"]).addcdiv_(gradient, deviation, value=-group["lr"])
            parameter.add_(step)
        else:
            parameter.addcdiv_(gradient, deviation, value=-group["lr"])


@register_optimizer("rmsprop", dataclass=RMSpropConfig)
class RMSprop(TorchOptimizer):
    """:class:`CenteredRMSprop` as an optimizer of fairseq."""

    make = CenteredRMSprop

    @property
    def optimizer_config(self) -> dict:
        return {
            "lr": self.first_lr,
            "rho": self.cfg.rmsprop_rho,
            "eps": self.cfg.rmsprop_eps,
            "momentum": self.cfg.rmsprop_momentum,
            "weight_decay": self.cfg.weight_decay,
        }
