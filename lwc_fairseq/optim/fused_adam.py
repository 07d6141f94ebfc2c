"""Adam with torch's fused kernels, which update all parameters in one pass instead of several passes over each."""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from omegaconf import II

from lwc_fairseq_compat.options import parse_betas

from .torch_optimizer import TorchOptimizer


@dataclass
class FusedAdamConfig(FairseqDataclass):
    """The options of fairseq's Adam."""

    adam_betas: Any = field(
        default=(0.9, 0.999),
        metadata={"help": "β₁ and β₂, decay rates of the means of gradients and squared gradients"},
    )
    adam_eps: float = field(default=1e-8, metadata={"help": "ε, added to the root of the mean of squared gradients"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay, decoupled from the gradient (AdamW)"})
    lr: list[float] = II("optimization.lr")  # noqa: RUF009


@register_optimizer("fused_adam", dataclass=FusedAdamConfig)
class FusedAdam(TorchOptimizer):
    """θ ← θ - lr · m̂ / (√v̂ + ε),  m̂ = m / (1 - β₁ᵗ),  v̂ = v / (1 - β₂ᵗ).

    Kingma and Ba, *Adam: A Method for Stochastic Optimization* (ICLR 2015), algorithm 1, with the weight decay of
    fairseq's Adam. fairseq's Adam adds ε to √v instead of √v̂. Otherwise both compute the same updates.

    Raises:
        UserError: --adam-betas are not two numbers in [0, 1).
    """

    def __init__(self, cfg: FusedAdamConfig, params):
        super().__init__(cfg)
        self._optimizer = torch.optim.AdamW(params, fused=True, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict:
        """The arguments of torch's optimizer. fairseq reads the learning rate from it when it resumes training."""
        return {
            "lr": self.first_lr,
            "betas": parse_betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }
