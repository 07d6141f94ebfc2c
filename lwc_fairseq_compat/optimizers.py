"""Optimizers, schedules of the learning rate and half precision."""

import types

import torch

from .errors import UserError, flag, package_that_raised
from .hooks import replaces


@replaces("fairseq.optim", "build_optimizer")
@replaces("fairseq.optim.lr_scheduler", "build_lr_scheduler")
def name_refused_options(build, cfg, *args, **kwargs):
    """Say in one line why an optimizer or a schedule cannot be built, for example because a package is missing.

    Why: fairseq ends with a traceback. Needed: always.
    """
    try:
        return build(cfg, *args, **kwargs)
    except (AssertionError, ImportError, NotImplementedError, ValueError) as error:
        if not str(error) or package_that_raised(error) not in ("fairseq", "torch"):
            raise
        option = flag(build.__name__.removeprefix("build_"))
        raise UserError(f"{option} {getattr(cfg, '_name', '')}: {' '.join(str(error).split())}") from error


@replaces("fairseq.models.ema.ema", "EMA._step_internal")
def average_shared_weights_once(step, self, new_model, updates=None):
    """Let ``--store-ema`` average a weight with several names once an update.

    Why: fairseq averages it once for each name, so that its decay is squared or cubed. Needed: always.
    """
    averages = self.fp32_params if self.config.ema_fp32 else self.model.state_dict()
    names = {
        (average.data_ptr(), average.shape): name for name, average in averages.items() if torch.is_tensor(average)
    }
    left_out = averages.keys() - names.values()
    weights = {name: weight for name, weight in new_model.state_dict().items() if name not in left_out}
    step(self, types.SimpleNamespace(state_dict=lambda: weights), updates)


@replaces("fairseq.optim.fairseq_optimizer", "FairseqOptimizer.load_state_dict")
def name_unknown_overrides(load_state_dict, self, state_dict, optimizer_overrides=None):
    """Say that ``--optimizer-overrides`` names a setting that the optimizer does not have.

    Why: fairseq adds it to the settings, where nothing reads it. Needed: always.
    """
    known = [name for name in self.param_groups[0] if name != "params"]
    for name in optimizer_overrides or ():
        if name not in known:
            raise UserError(f"--optimizer-overrides: the optimizer has no {name}, only {', '.join(known)}")
    load_state_dict(self, state_dict, optimizer_overrides)


@replaces("fairseq.optim.lr_scheduler.tri_stage_lr_scheduler", "TriStageLRSchedule.__init__")
def accept_rounded_ratio(init, self, cfg, optimizer):
    """Accept a ``--phase-ratio`` whose sum is 1 up to rounding, such as 0.3,0.6,0.1.

    Why: fairseq compares the sum in binary numbers with 1. Needed: always.
    """
    if cfg.phase_ratio is not None:
        first, second, _ = cfg.phase_ratio
        cfg.phase_ratio = (first, second, 1 - (first + second))
    init(self, cfg, optimizer)


@replaces("fairseq.optim.lr_scheduler.fairseq_lr_scheduler", "FairseqLRScheduler.load_state_dict")
@replaces("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.load_state_dict")
def name_other_schedule(load_state_dict, self, state_dict):
    """Say that a checkpoint was trained with another schedule.

    Why: the state of that schedule has other entries, and fairseq ends with a traceback. Needed: always.
    """
    try:
        load_state_dict(self, state_dict)
    except KeyError as error:
        raise UserError(
            "the checkpoint was trained with another --lr-scheduler: give that one, or add --reset-lr-scheduler"
        ) from error


@replaces("fairseq.optim.amp_optimizer", "AMPOptimizer.__init__")
def scale_losses_as_told(init, self, cfg, *args, **kwargs):
    """Obey ``--amp-init-scale`` and ``--amp-scale-window``.

    Why: fairseq takes the value of the first for the second, and that of ``--fp16-init-scale`` for the first. Needed:
    always.
    """
    init(self, cfg, *args, **kwargs)
    if self._grad_scaler.is_enabled():
        state = self._grad_scaler.state_dict() | {"scale": float(cfg.common.amp_init_scale)}
        if cfg.common.amp_scale_window:
            state["growth_interval"] = cfg.common.amp_scale_window
        self._grad_scaler.load_state_dict(state)


@replaces("fairseq.optim.amp_optimizer", "AMPOptimizer.step")
def unscale_gradients_once(step, self):
    """Step the optimizer whose gradients ``--amp`` has unscaled.

    Why: fairseq unscales and clips the gradients of the inner optimizer, and then gives the scaler the wrapper around
    it. The scaler takes the wrapper for another optimizer and unscales its gradients again: with SGD, an update is
    at first 1/128 of what it should be. Adam divides by the size of the gradients, which hides the error until they
    come near its epsilon. Needed: always.
    """
    self.scaler.step(self.optimizer)
    self.scaler.update()


@replaces("fairseq.optim.fp16_optimizer", "MemoryEfficientFP16Optimizer.__init__")
def name_unsupported_optimizer(init, self, cfg, params, optimizer, allow_unsupported=False, **kwargs):
    """Say which optimizers work with ``--memory-efficient-fp16``.

    Why: fairseq ends with a traceback. Needed: always.
    """
    if not allow_unsupported and not optimizer.supports_memory_efficient_fp16:
        kind = "bf16" if cfg.common.bf16 else "fp16"
        raise UserError(
            f"--memory-efficient-{kind} does not work with --optimizer {cfg.optimizer._name}, which does not "
            f"convert gradients itself: use --optimizer adam, or --{kind}"
        )
    init(self, cfg, params, optimizer, allow_unsupported, **kwargs)


@replaces("fairseq.optim.fp16_optimizer", "_FP16OptimizerMixin._sync_fp16_grads_to_fp32")
def copy_gradients_together(sync_fp16_grads_to_fp32, self):
    """Copy all gradients of a device to single precision in one call.

    Why: fairseq launches a kernel for each parameter, which takes longer than the copying. Needed: for speed, on a GPU.
    """
    if not (self.has_flat_params and self._needs_sync):
        return sync_fp16_grads_to_fp32(self)
    trained = [parameter for parameter in self.fp16_params if parameter.requires_grad]
    for parameters, parts in beside_flat(self.fp32_params, trained, lambda flat: flat.grad):
        torch._foreach_copy_(parts, [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters])
    self._needs_sync = False


@replaces("fairseq.optim.fp16_optimizer", "_FP16OptimizerMixin._sync_fp32_params_to_fp16")
def copy_parameters_together(sync_fp32_params_to_fp16, self):
    """Copy all parameters of a device back to half precision in one call, as :func:`copy_gradients_together` does.

    Needed: for speed, on a GPU.
    """
    if not self.has_flat_params:
        return sync_fp32_params_to_fp16(self)
    for parameters, parts in beside_flat(self.fp32_params, self.fp16_params, lambda flat: flat.data):
        torch._foreach_copy_([parameter.data for parameter in parameters], parts)


def beside_flat(flat_by_device, all_parameters, tensor_of):
    """Yield, for each device, its parameters, and the parts of its flat tensor in the shapes of these parameters.

    Args:
        flat_by_device: fairseq's flat copy of the parameters of each device, by its index.
        all_parameters: the parameters in half precision, in the order in which the flat copies hold them.
        tensor_of: returns the tensor to divide, given a flat copy: its values or its gradient.
    """
    for device, flat in flat_by_device.items():
        parameters = [parameter for parameter in all_parameters if parameter.device.index == device]
        parts = tensor_of(flat).split([parameter.numel() for parameter in parameters])
        yield parameters, [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
