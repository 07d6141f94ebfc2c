"""Training and generation in half precision."""

import functools
import importlib.util

import torch

from .errors import UserError
from .hooks import mends


@mends("fairseq.utils", "import_user_module")
def check_precision_of_every_command(import_user_module):
    """Refuse half precision without a GPU.

    Why: on a CPU ``--fp16``, ``--bf16`` and ``--amp`` fail deep inside with unrelated messages. Every command calls
    this function first. Needed: always.
    """

    @functools.wraps(import_user_module)
    def import_user_module_after_check(common):
        check_precision(common)
        import_user_module(common)

    return import_user_module_after_check


def check_precision(common):
    """Check that half precision is requested only if there is a GPU.

    Args:
        common: fairseq's group of common options, or a part of it.

    Raises:
        UserError: half precision is requested with ``--cpu`` or without a CUDA device.
    """
    options = ("memory_efficient_fp16", "fp16", "memory_efficient_bf16", "bf16", "amp")  # each implies the next
    chosen = [name for name in options if getattr(common, name, False)]
    if chosen and (getattr(common, "cpu", False) or not torch.cuda.is_available()):
        why = "--cpu is given" if getattr(common, "cpu", False) else "no CUDA device was found"
        flag = "--" + chosen[0].replace("_", "-")
        raise UserError(f"{flag} needs a CUDA device, but {why}: leave out {flag} to compute in 32 bits")


@mends("fairseq.distributed.utils", "call_main")
def run_bf16_on_gpus(call_main):
    """Run ``--bf16`` on a GPU.

    Why: ``fairseq/options.py`` sets ``tpu`` together with ``bf16``, so the commands ask for ``torch_xla`` even where
    there is a GPU. ``--bf16 --tpu`` still means a TPU where ``torch_xla`` is installed.
    Needed: always. Read, and tried without a GPU only.
    """

    @functools.wraps(call_main)
    def call_main_without_tpu(cfg, main, **kwargs):
        check_precision(cfg.common)
        if cfg.common.bf16 and importlib.util.find_spec("torch_xla") is None:
            cfg.common.tpu = cfg.distributed_training.tpu = False
        call_main(cfg, main, **kwargs)

    return call_main_without_tpu


@mends("fairseq.optim.amp_optimizer", "AMPOptimizer.step")
def unscale_gradients_once(step):
    """Step the optimizer whose gradients ``--amp`` has unscaled.

    Why: fairseq unscales and clips the gradients of the inner optimizer, and then gives the scaler the wrapper around
    it. The scaler takes the wrapper for another optimizer and unscales its gradients again: with SGD, an update is
    0.0078 of what it should be. Adam divides by the size of the gradients, which hides the error until they come near
    its epsilon. Needed: always.
    """

    @functools.wraps(step)
    def step_inner_optimizer(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()

    return step_inner_optimizer


@mends("fairseq.optim.fp16_optimizer", "MemoryEfficientFP16Optimizer.__init__")
def name_unsupported_optimizer(init):
    """Say which optimizers work with ``--memory-efficient-fp16``.

    Why: fairseq ends with a traceback. Needed: always.
    """

    @functools.wraps(init)
    def init_with_supported_optimizer(self, cfg, params, optimizer, allow_unsupported=False, **kwargs):
        if not allow_unsupported and not optimizer.supports_memory_efficient_fp16:
            kind = "bf16" if cfg.common.bf16 else "fp16"
            raise UserError(
                f"--memory-efficient-{kind} does not work with --optimizer {cfg.optimizer._name}, which does not "
                f"convert gradients itself: use --optimizer adam, or --{kind}"
            )
        init(self, cfg, params, optimizer, allow_unsupported, **kwargs)

    return init_with_supported_optimizer


@mends("fairseq.optim.fp16_optimizer", "_FP16OptimizerMixin._sync_fp16_grads_to_fp32")
def copy_gradients_together(sync_fp16_grads_to_fp32):
    """Copy all gradients to single precision at a time.

    Why: fairseq launches a kernel for each parameter, which takes longer than the copying. Needed: for speed, on a GPU.
    """

    @functools.wraps(sync_fp16_grads_to_fp32)
    def sync_gradients(self):
        if not (self.has_flat_params and self._needs_sync):
            return sync_fp16_grads_to_fp32(self)
        wanted = [parameter for parameter in self.fp16_params if parameter.requires_grad]
        for own, parts in beside_flat(self.fp32_params, wanted, lambda flat: flat.grad):
            gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in own]
            torch._foreach_copy_(parts, gradients)
        self._needs_sync = False

    return sync_gradients


@mends("fairseq.optim.fp16_optimizer", "_FP16OptimizerMixin._sync_fp32_params_to_fp16")
def copy_parameters_together(sync_fp32_params_to_fp16):
    """Copy all parameters back to half precision at a time, as :func:`copy_gradients_together` copies gradients.

    Needed: for speed, on a GPU.
    """

    @functools.wraps(sync_fp32_params_to_fp16)
    def sync_parameters(self):
        if not self.has_flat_params:
            return sync_fp32_params_to_fp16(self)
        for own, parts in beside_flat(self.fp32_params, self.fp16_params, lambda flat: flat.data):
            torch._foreach_copy_([one.data for one in own], parts)

    return sync_parameters


def beside_flat(flat_by_device, parameters, tensor_of):
    """Yield, for each device, its parameters, and their parts of a flat tensor in their shapes.

    Args:
        flat_by_device: fairseq's flat copy of the parameters of each device, by its index.
        parameters: the parameters in half precision, in the order in which the flat copies hold them.
        tensor_of: returns the tensor to divide, given a flat copy: its values or its gradient.
    """
    for device, flat in flat_by_device.items():
        own = [parameter for parameter in parameters if parameter.device.index == device]
        parts = tensor_of(flat).split([one.numel() for one in own])
        yield own, [part.view_as(one) for part, one in zip(parts, own, strict=True)]
