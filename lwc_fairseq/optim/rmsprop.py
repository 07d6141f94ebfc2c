"""RMSprop as defined by Graves. Neither fairseq nor torch implements this form."""

from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from omegaconf import II
from torch import Tensor

from .torch_optimizer import TorchOptimizer


@dataclass
class RMSpropConfig(FairseqDataclass):
    """The options of RMSprop. The defaults are those of Zhang et al., *Asynchronous Bidirectional Decoding for NMT*
    (AAAI 2018)."""

    rmsprop_rho: float = field(
        default=0.95, metadata={"help": "ρ, decay rate of the means of gradients and squared gradients"}
    )
    rmsprop_eps: float = field(default=1e-4, metadata={"help": "ε, added to the variance of gradients"})
    rmsprop_momentum: float = field(default=0.0, metadata={"help": "μ, momentum"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: list[float] = II("optimization.lr")  # noqa: RUF009


@register_optimizer("rmsprop", dataclass=RMSpropConfig)
class RMSprop(TorchOptimizer):
    """:class:`CenteredRMSprop` as an optimizer of fairseq."""

    def __init__(self, cfg: RMSpropConfig, params):
        super().__init__(cfg)
        self._optimizer = CenteredRMSprop(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict:
        """The optimizer's arguments. fairseq reads the learning rate from it when it resumes training."""
        return {
            "lr": self.first_lr,
            "rho": self.cfg.rmsprop_rho,
            "eps": self.cfg.rmsprop_eps,
            "momentum": self.cfg.rmsprop_momentum,
            "weight_decay": self.cfg.weight_decay,
        }


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

    def __setstate__(self, state: dict) -> None:
        """torch's hook for loading. Older checkpoints were written by torch's RMSprop and lack ρ and m."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, self.state[parameter], group)

    def _update(self, parameter: Tensor, state: dict, group: dict) -> None:
        names = ["square_avg", "grad_avg", *(["step_before"] if group["momentum"] else [])]
        for name in names:
            if name not in state:
                state[name] = torch.zeros_like(parameter)
        squares, mean = state["square_avg"], state["grad_avg"]
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
