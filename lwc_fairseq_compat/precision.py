"""Half precision: ``--bf16`` and ``--amp`` on a CPU, ``--bf16`` in translation, and attention on a GPU."""

import logging
import time
from contextvars import ContextVar

import torch

from .errors import UserError, flag
from .hooks import mends, replaces

BFLOAT16_DEVICE = ContextVar("BFLOAT16_DEVICE", default="")
"""The type of device, "cpu" or "cuda", on which a command computes in bfloat16; empty if it does not."""


@mends("fairseq.modules.multihead_attention")
def attend_without_cudnn(module):
    """Let PyTorch's attention in half precision choose among its own kernels, and not those of cuDNN.

    Why: from PyTorch 2.11 on, cuDNN comes first on GPUs such as the H200. It makes a plan for each shape, and batches
    of sentences have hundreds of shapes. With a mask, gradients may be NaN
    (https://github.com/pytorch/pytorch/issues/196678). Needed: PyTorch 2.11 and newer, on a GPU.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


@replaces("fairseq.utils", "import_user_module")
def compute_in_bfloat16(import_user_module, args):
    """Let ``--bf16`` and ``--amp`` work on a CPU.

    Forward passes and losses compute in bfloat16 by autocast. Weights, gradients and the optimizer have 32 bits, so
    checkpoints are the same as without the option. There is no loss scaling, because bfloat16 has the range of 32 bits.
    Commands call ``import_user_module`` first, in each process.
    Why: fairseq has no such path. It would make a scaler for CUDA, or ask for a TPU. Needed: always.
    """
    import_user_module(args)
    if not hasattr(args, "bf16"):  # a part of the options
        return
    on_cpu = check_precision(args)
    option = "bf16" if args.bf16 else "amp" if args.amp else None
    BFLOAT16_DEVICE.set("cpu" if on_cpu and option else "cuda" if args.bf16 else "")
    if on_cpu and option:
        log_if_slower(flag(option))


def check_precision(common):
    """Check that the options of half precision fit the device, and return whether this is a CPU.

    Args:
        common: fairseq's group of common options, or a part of it.

    Raises:
        UserError: float16, or weights in half precision, are requested on a CPU.
    """
    on_cpu = common.cpu or not torch.cuda.is_available()
    refused = ("memory_efficient_fp16", "fp16", "memory_efficient_bf16")  # the first implies the second
    name = next((name for name in refused if getattr(common, name)), None)
    if on_cpu and name:
        why = "--cpu is given" if common.cpu else "no CUDA device was found"
        raise UserError(f"{flag(name)} needs a CUDA device, but {why}: use --bf16, or leave out {flag(name)}")
    return on_cpu


def log_if_slower(option):
    """Warn if this processor multiplies matrices in bfloat16 more slowly than in 32 bits.

    Args:
        option: what asked for bfloat16, such as "--bf16".
    """
    ratio = bfloat16_ratio()
    if ratio > 1:
        logging.getLogger(__name__).warning(
            f"on this processor, matrix products in bfloat16 take {ratio:.1f} times as long as in 32 bits: "
            f"leave out {option}"
        )


def bfloat16_ratio():
    """Return the time of a matrix product in bfloat16 ÷ its time in 32 bits on this processor.

    The instructions alone do not tell: of two processors with those of AVX-512, one multiplies bfloat16 twice as fast
    as 32 bits, and the other half as fast. Therefore, this function measures both, in a fraction of a second.
    """
    matrix = torch.ones(512, 512)
    return seconds_of_product(matrix.bfloat16()) / seconds_of_product(matrix)


def seconds_of_product(matrix):
    """Return the processor time of a square matrix times itself: the least of three times."""
    times = []
    for _ in range(3):
        began = time.process_time()
        torch.mm(matrix, matrix)
        times.append(time.process_time() - began)
    return min(times)


@replaces("fairseq.trainer", "Trainer.__init__")
def keep_weights_in_32_bits(init, self, cfg, *args, **kwargs):
    """Train in bfloat16 on a CPU without fairseq's options for it, which the checkpoint then does not have either.

    Why: they would convert the weights or make a scaler for CUDA. Needed: always.
    """
    if BFLOAT16_DEVICE.get() == "cpu":
        cfg.common.bf16 = cfg.common.amp = cfg.common.tpu = False
    init(self, cfg, *args, **kwargs)


@replaces("fairseq.criterions", "build_criterion")
def autocast_losses(build_criterion, *args, **kwargs):
    """Compute the forward pass and the loss of a training or a validation on a CPU in bfloat16. Needed: always."""
    criterion = build_criterion(*args, **kwargs)
    if BFLOAT16_DEVICE.get() == "cpu":
        criterion.forward = torch.autocast("cpu", torch.bfloat16)(criterion.forward)
    return criterion


@replaces("fairseq.models.fairseq_model", "BaseFairseqModel.prepare_for_inference_")
def translate_in_bfloat16(prepare_for_inference_, self, cfg):
    """Let ``fairseq-generate`` and ``fairseq-interactive`` obey ``--bf16``, on a GPU too.

    Why: of the options of half precision, fairseq's translation obeys only ``--fp16``. Needed: always.
    """
    prepare_for_inference_(self, cfg)
    if BFLOAT16_DEVICE.get():
        self.bfloat16()
