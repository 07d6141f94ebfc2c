"""Training of a system on given batches, update by update."""

import re
from contextlib import nullcontext
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
"""Of fairseq, on a GPU. On a CPU bf16 is autocast, around the updates of both systems alike."""


def configure(system: System, criterion: tuple[str, ...], data: Path, device: str, precision: str):
    """The configuration that fairseq-train would have."""
    flags = [str(data), *USER_DIR, "--task", system.task, *system.model, *criterion, "--optimizer", system.adam]
    flags += OPTIMIZER
    flags += ["--max-tokens", "100000"]  # of which nothing comes: batches are given
    flags += ["--cpu"] if device == "cpu" else PRECISION_FLAGS.get(precision, [])
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), flags))


ROUNDING = {"bf16": 5e-2, "fp16": 1e-2}
"""Of the largest entry of a gradient."""


class Training:
    """A system with its optimizer, and the batches it is trained on.

    Args:
        criterion: flags; those of the system or fairseq's plain ones.
        batches: indices of sentences, the same for every system.
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
        self.task.load_dataset("train")
        set_torch_seed(1)
        model = self.task.build_model(cfg.model)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.trainer.lr_step_begin_epoch(1)
        dataset = self.task.dataset("train")
        self.samples = [dataset.collater([dataset[index] for index in batch]) for batch in batches]
        autocast = device == "cpu" and precision == "bf16"
        self.context = (lambda: torch.autocast("cpu", torch.bfloat16)) if autocast else nullcontext

    def update(self, number: int) -> None:
        """One update, on batch `number`, counted past the last from the first again; done when it returns."""
        with metrics.aggregate(new_root=True), self.context():
            self.trainer.train_step([self.samples[number % len(self.samples)]])
        if self.device == "cuda":
            torch.cuda.synchronize()

    def target_tokens(self, number: int) -> int:
        return self.samples[number % len(self.samples)]["ntokens"]

    def loss_and_gradients(self, number: int) -> tuple[float, dict[str, torch.Tensor]]:
        """Of the first weights, with the dropout that one seed draws."""
        model, criterion = self.trainer.model.train(), self.trainer.criterion.train()
        sample = self.samples[number]
        sample = move_to_cuda(sample) if self.device == "cuda" else sample
        set_torch_seed(1)
        model.zero_grad()
        with self.context():
            loss, _, _ = criterion(model, sample)
        loss.backward()
        found = {name: parameter.grad.float() for name, parameter in model.named_parameters()}
        return loss.item(), found

    def peak_memory(self) -> int:
        """Bytes: on a GPU what tensors held, else what the process held."""
        if self.device == "cuda":
            return torch.cuda.max_memory_allocated()
        # not getrusage, whose maximum counts the process that this one was forked from
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])


def read_pairs(system: System, data: Path):
    """The training data, as the system's task has them."""
    task = setup_task(configure(system, system.criterion, data, "cpu", "fp32").task)
    task.load_dataset("train")
    return task.dataset("train")


def make_batches(data_sizes: list[tuple[int, int]], max_tokens: int, count: int) -> list[list[int]]:
    """So many batches of pairs of about one length, each of at most `max_tokens` source plus target tokens, drawn
    evenly from short to long."""
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
    """Raises SystemExit unless loss and gradients of both are the same but for rounding."""
    loss, gradients = one.loss_and_gradients(0)
    expected_loss, expected = other.loss_and_gradients(0)
    tolerance = ROUNDING.get(precision, 1e-3)
    if abs(loss - expected_loss) > tolerance * abs(expected_loss):
        raise SystemExit(f"benchmark: {one.system.name}: loss {loss}, by fairseq's criterion {expected_loss}")
    for name, gradient in gradients.items():
        largest = expected[name].abs().max()
        if (gradient - expected[name]).abs().max() > tolerance * largest + 1e-12:
            raise SystemExit(f"benchmark: {one.system.name}: the gradient of {name} differs from the plain one")
