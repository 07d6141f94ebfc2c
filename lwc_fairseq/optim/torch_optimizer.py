"""A base class for torch's optimizers in fairseq."""

from fairseq.optim import FairseqOptimizer


class TorchOptimizer(FairseqOptimizer):
    """An optimizer that updates each element independently. A subclass sets `_optimizer`."""

    @property
    def supports_flat_params(self) -> bool:
        """Always true: elements are updated independently, so --fp16 may flatten all parameters into one."""
        return True

    @property
    def first_lr(self) -> float:
        """The learning rate; if there is one for each epoch, the first one."""
        lr = self.cfg.lr
        return lr if isinstance(lr, float) else lr[0]
