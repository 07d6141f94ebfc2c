"""RMSprop, which fairseq lacks: torch's, as an optimizer of fairseq."""

from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from omegaconf import II

from .torch_optimizer import TorchOptimizer


@dataclass
class RMSpropConfig(FairseqDataclass):
    """Defaults are those of Zhang et al., *Asynchronous Bidirectional Decoding for NMT* (AAAI 2018)."""

    rmsprop_rho: float = field(default=0.95, metadata={"help": "decay of the mean of squared gradients, ρ"})
    rmsprop_eps: float = field(default=1e-4, metadata={"help": "added to the root of that mean, ε"})
    rmsprop_momentum: float = field(default=0.0, metadata={"help": "momentum"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: list[float] = II("optimization.lr")  # noqa: RUF009


@register_optimizer("rmsprop", dataclass=RMSpropConfig)
class RMSprop(TorchOptimizer):
    """v ← ρ v + (1 - ρ) g²,  θ ← θ - lr · g / (√v + ε)."""

    def __init__(self, cfg: RMSpropConfig, params):
        super().__init__(cfg)
        self._optimizer = torch.optim.RMSprop(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict:
        """torch's arguments; fairseq takes the learning rate from here when it resumes."""
        return {
            "lr": self.first_lr,
            "alpha": self.cfg.rmsprop_rho,
            "eps": self.cfg.rmsprop_eps,
            "momentum": self.cfg.rmsprop_momentum,
            "weight_decay": self.cfg.weight_decay,
        }
