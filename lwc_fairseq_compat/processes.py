"""Training with several processes, and their devices."""

import functools
import importlib.util

import torch

from .errors import UserError
from .hooks import mends


@mends("fairseq.distributed.utils", "call_main")
def refuse_backends_of_fairscale(call_main):
    """Say at the start that ``--ddp-backend fully_sharded`` and ``slowmo`` need a package that is missing.

    Why: fairseq finds out later, with a traceback. Needed: always.
    """

    @functools.wraps(call_main)
    def call_main_with_known_backend(cfg, main, **kwargs):
        backend = cfg.distributed_training.ddp_backend
        if backend in ("fully_sharded", "slowmo") and importlib.util.find_spec("fairscale") is None:
            raise UserError(
                f"--ddp-backend {backend} needs fairscale, which is archived and with which these models were never "
                "tried: use pytorch_ddp or legacy_ddp"
            )
        call_main(cfg, main, **kwargs)

    return call_main_with_known_backend


@mends("fairseq.distributed.utils", "_infer_single_node_init")
def count_devices_before_starting(infer_single_node_init):
    """Say how to start several processes if there are fewer GPUs than processes.

    Why: fairseq fails an assertion. Needed: always.
    """

    @functools.wraps(infer_single_node_init)
    def infer_single_node_init_with_devices(cfg):
        wanted, found = cfg.distributed_world_size, torch.cuda.device_count()
        if wanted > found:
            raise UserError(
                f"--distributed-world-size {wanted} starts a process for each GPU, and there are {found}: lower it; or "
                f"start the processes by `torchrun --nproc_per_node {wanted} --no-python` before the command, which "
                "works on a CPU too (there with --cpu)"
            )
        infer_single_node_init(cfg)

    return infer_single_node_init_with_devices


@mends("fairseq.distributed.utils", "distributed_init")
def connect_cpus(distributed_init):
    """Let processes with ``--cpu`` communicate without further flags.

    Why: the default backend, NCCL, connects only GPUs. Needed: always.
    """

    @functools.wraps(distributed_init)
    def distributed_init_with_backend(cfg):
        if cfg.common.cpu and cfg.distributed_training.distributed_backend == "nccl":
            cfg.distributed_training.distributed_backend = "gloo"
        return distributed_init(cfg)

    return distributed_init_with_backend


@mends("fairseq.models.distributed_fairseq_model", "DistributedDataParallel")
def wrap_models_on_cpus(distribute):
    """Let ``--ddp-backend pytorch_ddp``, the default, wrap a model on a CPU.

    Why: fairseq passes a device number, which PyTorch refuses for a CPU. Needed: always.
    """

    def distribute_without_device(module, device_ids, output_device, **settings):
        if not any(parameter.is_cuda for parameter in module.parameters()):
            device_ids = output_device = None
        return distribute(module, device_ids=device_ids, output_device=output_device, **settings)

    return distribute_without_device


@mends("fairseq.data.iterators", "EpochBatchIterator.state_dict")
def save_number_of_processes(state_dict):
    """Save how many processes read the batches of an epoch, for :func:`resume_with_other_number_of_processes`.

    Needed: always.
    """

    @functools.wraps(state_dict)
    def state_dict_with_shards(self):
        return {**state_dict(self), "num_shards": self.num_shards}

    return state_dict_with_shards


@mends("fairseq.data.iterators", "EpochBatchIterator.load_state_dict")
def resume_with_other_number_of_processes(load_state_dict):
    """Resume in the middle of an epoch after the batches that were read, even with another number of processes.

    Why: the saved position counts the batches of one process. With another number of processes, training would skip
    or repeat batches. If the new number does not divide the batches that were read, the last few are repeated.
    Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_state_dict_of_shards(self, state):
        shards = state.get("num_shards", self.num_shards)  # checkpoints of plain fairseq lack it
        position = state.get("iterations_in_epoch", 0) * shards // self.num_shards
        load_state_dict(self, {**state, "iterations_in_epoch": position})

    return load_state_dict_of_shards
