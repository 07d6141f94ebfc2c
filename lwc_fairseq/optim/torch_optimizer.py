"""An optimizer of torch as one of fairseq."""

from fairseq.optim import FairseqOptimizer


class TorchOptimizer(FairseqOptimizer):
    """What those that update each element by itself have in common. A subclass makes `_optimizer`."""

    @property
    def supports_flat_params(self) -> bool:
        """Each element is updated by itself, so --fp16 may flatten parameters into one."""
        return True

    @property
    def first_lr(self) -> float:
        """The learning rate, or that of the first epoch."""
        lr = self.cfg.lr
        return lr if isinstance(lr, float) else lr[0]
