"""Training, validation and generation of one model with fairseq's own classes, counted."""

import copy
import functools
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from .tally import Tally, counting

COMMON = (
    *("-s", "de", "-t", "en", "--user-dir", "lwc_fairseq", "--task", "concat_translation", "--max-tokens", "99999"),
    *("--optimizer", "fused_adam", "--lr", "1e-3", "--clip-norm", "1", "--seed", "1"),
)
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class Session:
    """A task with a model and one batch of training data.

    Args:
        data: folder of binary data.
        flags: options of fairseq-train; the last of an option counts.
        pairs: sentence pairs in the batch.
        common: fields of fairseq's common configuration to set, such as "fp16".
    """

    def __init__(self, data: Path, flags: Sequence[str], pairs: int, common: Sequence[str] = ()):
        self.cfg = copy.deepcopy(configuration(data, tuple(flags)))
        for name in common:
            self.cfg.common[name] = True
        torch.manual_seed(1)
        self.task = tasks.setup_task(self.cfg.task)
        self.model = self.task.build_model(self.cfg.model)
        if hasattr(self.model, "missing_file"):
            self.model.missing_file = None  # nsc begins with a reverse model; random weights do here
        self.task.load_dataset("train")  # after the model, which says whether it reads packed batches
        dataset = self.task.dataset("train")
        self.sample = dataset.collater([dataset[i] for i in range(pairs)])

    def train(self) -> dict[str, Tally]:
        """Tallies of the second update and of the validation of one batch."""
        criterion = self.task.build_criterion(self.cfg.criterion)
        trainer = Trainer(self.cfg, self.task, self.model, criterion)
        with ExitStack() as stack:
            stack.enter_context(metrics.aggregate(new_root=True))
            trainer.lr_step_begin_epoch(1)
            trainer.train_step([self.sample])  # builds the optimizer
            update = stack.enter_context(counting())
            trainer.train_step([self.sample])
            if trainer.get_num_updates() != 2:
                raise RuntimeError("an update was left out, as when gradients overflow")
            validation = stack.enter_context(counting())
            trainer.valid_step(self.sample)
        return {"update": update, "validation": validation}

    def generate(self, precision: str, search: str, length: int | None = None) -> tuple[Tally, int]:
        """The tally of one batch with beam 5, and its number of decoding steps.

        Args:
            precision: "fp32", "fp16" or "bf16".
            search: one of `SEARCHES`.
            length: words of each hypothesis; without it, the model decides, and 20 is the limit.
        """
        cfg = self.cfg.generation
        cfg.beam, cfg.max_len_a, cfg.max_len_b = 5, 0, length or 20
        cfg.min_len = length or 1
        cfg.print_alignment = "hard" if search == "alignment" else None
        if search == "stock":
            self.task.cfg.stock_search = True
        self.model.eval().to(DTYPES[precision]).cuda()
        self.model.prepare_for_inference_(self.cfg)
        self.sample["net_input"].pop("packing", None)
        sample = utils.move_to_cuda(self.sample)
        generator = self.task.build_generator([self.model], cfg)
        steps = count_calls(self.model.decoder)
        with counting() as batch:
            found = self.task.inference_step(generator, [self.model], sample)
        if not all(hypotheses and torch.isfinite(hypotheses[0]["score"]) for hypotheses in found):
            raise RuntimeError("a sentence has no hypothesis with a finite score")
        return batch, len(steps)


@functools.cache
def configuration(data: Path, flags: tuple[str, ...]) -> DictConfig:
    """What fairseq-train makes of its options, which takes it as long as most measurements."""
    args = options.parse_args_and_arch(options.get_training_parser(), [str(data), *COMMON, *flags])
    cfg = convert_namespace_to_omegaconf(args)
    cfg.common.tpu = cfg.distributed_training.tpu = False  # no option of fairseq-train, but read
    return cfg


def count_calls(module: torch.nn.Module) -> list:
    """A list to which each call of a module's `forward` adds an entry."""
    calls, forward = [], module.forward

    def counted(*args, **kwargs):
        calls.append(None)
        return forward(*args, **kwargs)

    module.forward = counted
    return calls
