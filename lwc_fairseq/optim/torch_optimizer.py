"""A base class for torch's optimizers in fairseq."""

import torch
from fairseq.optim import FairseqOptimizer
from torch import Tensor


class TorchOptimizer(FairseqOptimizer):
    """An optimizer that updates each element independently. A subclass sets `_optimizer`.

    It scales and clips the gradients of all parameters together. On a GPU, fairseq's own methods launch a kernel or
    two for each parameter.
    """

    def multiply_grads(self, c: float | Tensor) -> None:
        """Multiply all gradients by `c`."""
        gradients = self._gradients()
        if gradients:
            torch._foreach_mul_(gradients, c.to(gradients[0].device) if torch.is_tensor(c) else c)

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn=None) -> Tensor:
        """Scale the gradients so that their joint norm is at most `max_norm` (0: any), and return the norm before.

        With `aggregate_norm_fn`, which joins the norms of sharded parameters, this is fairseq's method.
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
    def supports_flat_params(self) -> bool:
        """Always true: elements are updated independently, so --fp16 may flatten all parameters into one."""
        return True

    @property
    def first_lr(self) -> float:
        """The learning rate; if there is one for each epoch, the first one."""
        lr = self.cfg.lr
        return lr if isinstance(lr, float) else lr[0]
