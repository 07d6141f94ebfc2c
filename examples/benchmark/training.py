"""Training of a system on given batches, one update at a time."""

import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.tasks import setup_task
from fairseq.trainer import Trainer
from fairseq.utils import move_to_cuda, set_torch_seed

from systems import OPTIMIZER, USER_DIR, System

PRECISION_FLAGS = {"fp16": ["--fp16"], "bf16": ["--bf16"]}
"""The flags of fairseq on a GPU. On a CPU, training in bf16 means autocast around the updates of every system."""


def configure(system: System, criterion: tuple[str, ...], data: Path, device: str, precision: str):
    """The configuration that fairseq-train makes of these flags."""
    flags = [str(data), *USER_DIR, "--task", system.task, *system.model, *criterion, "--optimizer", system.adam]
    flags += OPTIMIZER
    flags += ["--max-tokens", "100000"]  # without effect: the batches are given
    flags += ["--cpu"] if device == "cpu" else PRECISION_FLAGS.get(precision, [])
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), flags))
    cfg.common.tpu = cfg.distributed_training.tpu = False  # --bf16 sets both; lwc_fairseq_compat undoes it in commands
    return cfg


ROUNDING = {"bf16": 5e-2, "fp16": 1e-2}
"""Allowed differences, relative to the largest entry of a gradient."""


class Training:
    """A system with its optimizer, and the batches that it trains on.

    Args:
        criterion: the flags of the system's criterion, or of fairseq's plain one.
        batches: the indices of the sentences of each batch, the same for every system.
    """

    def __init__(
        self,
        system: System,
        criterion: tuple[str, ...],
        data: Path,
        device: str,
        precision: str,
        batches: list[list[int]],
    ):
        self.system, self.device = system, device
        cfg = configure(system, criterion, data, device, precision)
        self.task = setup_task(cfg.task)
        set_torch_seed(1)
        # As in fairseq-train, the model comes before the data: its class decides whether batches contain a packing.
        model = self.task.build_model(cfg.model)
        self.task.load_dataset("train")
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.trainer.cuda_env = None  # or fairseq would reset the peak of the memory after each update
        self.trainer.lr_step_begin_epoch(1)
        dataset = self.task.dataset("train")
        self.samples = [dataset.collater([dataset[index] for index in batch]) for batch in batches]
        autocast = device == "cpu" and precision == "bf16"
        self.context = (lambda: torch.autocast("cpu", torch.bfloat16)) if autocast else nullcontext

    def update(self, number: int) -> None:
        """Makes one update on batch `number`, modulo the number of batches. Waits for the device to finish."""
        with metrics.aggregate(new_root=True), self.context():
            self.trainer.train_step([self.samples[number % len(self.samples)]])
        if self.device == "cuda":
            torch.cuda.synchronize()

    def target_tokens(self, number: int) -> int:
        return self.samples[number % len(self.samples)]["ntokens"]

    def loss_and_gradients(self, number: int) -> tuple[float, dict[str, torch.Tensor]]:
        """The loss and gradients of the untrained model, with the dropout of a fixed seed."""
        model, criterion = self.trainer.model.train(), self.trainer.criterion.train()
        sample = self.samples[number]
        sample = move_to_cuda(sample) if self.device == "cuda" else sample
        set_torch_seed(1)
        model.zero_grad()
        with self.context():
            loss, _, _ = criterion(model, sample)
        loss.backward()
        gradients = {name: parameter.grad.float() for name, parameter in model.named_parameters()}
        return loss.item(), gradients

    def peak_memory(self) -> int:
        """The peak memory in bytes: of tensors on a GPU, else of the process."""
        if self.device == "cuda":
            return torch.cuda.max_memory_allocated()
        # The maximum of getrusage includes the process that this one was forked from.
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])


def read_pairs(system: System, data: Path):
    """The training data as fairseq's translation task loads them for a system."""
    system = replace(system, task="translation")
    task = setup_task(configure(system, system.criterion, data, "cpu", "fp32").task)
    task.load_dataset("train")
    return task.dataset("train")


def make_batches(data_sizes: list[tuple[int, int]], max_tokens: int, count: int) -> list[list[int]]:
    """Batches of pairs of similar length, evenly spaced from short to long.

    Args:
        data_sizes: (source, target) tokens of each pair.
        max_tokens: the most source plus target tokens of a batch.
        count: the number of batches.
    """
    order = sorted(range(len(data_sizes)), key=lambda index: sum(data_sizes[index]))
    batches, batch, tokens = [], [], 0
    for index in order:
        size = sum(data_sizes[index])
        if batch and tokens + size > max_tokens:
            batches.append(batch)
            batch, tokens = [], 0
        batch.append(index)
        tokens += size
    if not batches:
        return [batch]
    return batches[:: max(1, len(batches) // count)][:count]


def check_equal(one: Training, other: Training, precision: str) -> None:
    """Raises SystemExit unless the losses and gradients of both differ only by rounding."""
    loss, gradients = one.loss_and_gradients(0)
    expected_loss, expected = other.loss_and_gradients(0)
    tolerance = ROUNDING.get(precision, 1e-3)
    if not abs(loss - expected_loss) <= tolerance * abs(expected_loss):  # a NaN is no number within
        raise SystemExit(f"benchmark: {one.system.name}: loss {loss}, by fairseq's criterion {expected_loss}")
    for name, gradient in gradients.items():
        largest = expected[name].abs().max()
        if not (gradient - expected[name]).abs().max() <= tolerance * largest + 1e-12:
            raise SystemExit(f"benchmark: {one.system.name}: the gradient of {name} differs from the plain one")
