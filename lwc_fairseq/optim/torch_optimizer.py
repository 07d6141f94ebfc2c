"""Optimizers of torch as optimizers of fairseq."""

from fairseq.optim import FairseqOptimizer


class TorchOptimizer(FairseqOptimizer):
    """An optimizer that updates each element independently. A subclass sets `_optimizer`."""

    @property
    def supports_flat_params(self) -> bool:
        """Elements are independent, so --fp16 may flatten all parameters into one."""
        return True

    @property
    def first_lr(self) -> float:
        """The learning rate, or that of the first epoch."""
        lr = self.cfg.lr
        return lr if isinstance(lr, float) else lr[0]
