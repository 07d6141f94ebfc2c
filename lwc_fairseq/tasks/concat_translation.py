"""The task `concat_translation`: translation of concatenated, packed sentence pairs, in either target direction."""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Optional

from fairseq.data import LanguagePairDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.utils import resolve_max_positions
from omegaconf import OmegaConf

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import truncate_source

from ..data.concat_dataset import ConcatPairDataset
from ..data.reverse import is_reversed, reverse_constraints, reverse_hypothesis, reverse_targets
from ..models.interface import TranslationModel
from ..search.empty_source import translate_empty_sources
from ..search.generators import build_ranked_generator, without_attention
from ..search.reverse_lines import reverse_lines


@dataclass
class ConcatTranslationConfig(TranslationConfig):
    """The options of fairseq's translation task, and the additional options of this task."""

    reverse_target: bool = field(
        default=False,
        metadata={"help": "train and generate targets from right to left; hypotheses are printed in reading order"},
    )
    gnmt_length_penalty: bool = field(
        default=False,
        metadata={"help": "divide a hypothesis' score by ((5 + length) / 6)^lenpen instead of length^lenpen"},
    )
    agreement_path: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint(s) of right-to-left models, trained with --reverse-target; rank the hypotheses of "
            "these models and of the models in --path by the sum of both scores"
        },
    )
    stock_search: bool = field(
        default=False,
        metadata={"help": "generate with fairseq's own beam search, which finds the same hypotheses but is slower"},
    )
    print_reverse: bool = field(
        default=False,
        metadata={
            "help": "also print the reverse translation of abd and nsc models (in an ensemble, of the first such "
            "model) to standard output, as lines R- in subwords, before the other lines of the batch; "
            "fairseq-interactive prints them without numbers"
        },
    )


@register_task("concat_translation", dataclass=ConcatTranslationConfig)
class ConcatTranslationTask(TranslationTask):
    """fairseq's translation task, with pairs ordered and batched by source plus target length.

    --max-tokens limits the number of source plus target tokens of a batch. For models that read the packed stream
    (`lwc_transformer`), the data loader computes its indices on the CPU and adds them to the batch. Other models train
    as in fairseq's own task. The task translates an empty line to an empty line.
    """

    cfg: ConcatTranslationConfig

    def __init__(self, cfg: ConcatTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        self.with_packing = False  # whether the model reads the packed stream; build_model sets it
        self.longest_source: int | None = None  # in tokens; build_generator sets it
        self.trained_reversed: list[bool] = []  # of each model from a checkpoint; build_model adds to it
        self.reverse_models: list[BaseFairseqModel] = []  # of --agreement-path; build_generator loads them

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, set `with_packing`, and note the order of targets that a checkpoint was trained with."""
        if self.cfg.agreement_path and self.cfg.eval_bleu:
            raise UserError("--agreement-path cannot be combined with --eval-bleu: leave it out in training")
        model = super().build_model(cfg, from_checkpoint)
        self.with_packing = isinstance(model, TranslationModel) and model.reads_packing
        if (
            from_checkpoint
        ):  # `cfg` is part of the checkpoint's options or, for a model without a dataclass, all of them
            trained = cfg if isinstance(cfg, Namespace) else OmegaConf.select(cfg, "..task")
            self.trained_reversed.append(is_reversed(trained))
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, task_cfg=None, **kwargs) -> None:
        """Load a split. `task_cfg` is the task's configuration in the checkpoint, if there is one.

        Raises:
            UserError: --num-batch-buckets is set, --load-alignments together with --reverse-target, or
                --reverse-target differs from the checkpoint's.
        """
        if self.cfg.num_batch_buckets:
            raise UserError(
                f"--num-batch-buckets {self.cfg.num_batch_buckets}: concat_translation packs batches without padding; "
                "leave the flag out"
            )
        if self.cfg.reverse_target and self.cfg.load_alignments:
            raise UserError(
                "--load-alignments cannot be combined with --reverse-target, because alignments number the words of "
                "targets in reading order: leave one of them out"
            )
        if task_cfg is not None:
            self._check_order([is_reversed(task_cfg)])
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        self.datasets[split] = self._concat(self.datasets[split])

    def check_checkpoint(self, trained) -> None:
        """Refuse to resume a training with targets in the other order.

        Args:
            trained: the task's configuration in the checkpoint.

        Raises:
            UserError: --reverse-target differs from the checkpoint's.
        """
        self._check_order([is_reversed(trained)])

    def _check_order(self, trained_reversed: list[bool]) -> None:
        """Raises UserError if a model was trained with targets in the other order."""
        if (not self.cfg.reverse_target) in trained_reversed:
            raise UserError(
                "the checkpoint was trained without --reverse-target: leave out --reverse-target"
                if self.cfg.reverse_target
                else "the checkpoint was trained with --reverse-target: add --reverse-target"
            )

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None) -> ConcatPairDataset:
        """Build fairseq's dataset, with sources that are too long for the models truncated, so that every source is
        translated."""
        if self.longest_source is not None:
            src_tokens = [truncate_source(tokens, self.longest_source) for tokens in src_tokens]
        src_lengths = [len(tokens) for tokens in src_tokens]
        return self._concat(super().build_dataset_for_inference(src_tokens, src_lengths, constraints))

    def _concat(self, pairs: LanguagePairDataset) -> ConcatPairDataset:
        return ConcatPairDataset(
            pairs,
            self.source_dictionary.pad(),
            with_packing=self.with_packing,
            reverse_target=self.cfg.reverse_target,
        )

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None):
        """Build a generator with this task's options, or one of the class `seq_gen_cls` if it is given.

        Raises:
            UserError: a model was trained with targets in the other order.
        """
        self._check_order(self.trained_reversed)
        limits = [self.max_positions(), *(model.max_positions() for model in models)]
        self.longest_source, _ = resolve_max_positions(*limits)
        build = super().build_generator
        if seq_gen_cls is not None:
            return build(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        return build_ranked_generator(self, build, models, args, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Return hypotheses in reading order. The batch's target, which fairseq prints afterwards, changes to reading
        order as well."""
        # Only training uses the packing, and fairseq's own models in an ensemble do not accept it.
        sample["net_input"].pop("packing", None)
        if self.cfg.print_reverse:
            dictionaries = self.source_dictionary, self.target_dictionary
            print(*reverse_lines(models, sample, dictionaries, self.cfg.reverse_target), sep="\n")
        if self.cfg.reverse_target and constraints is not None:
            constraints = reverse_constraints(constraints)
        hypotheses = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if not isinstance(generator, SequenceScorer):
            translate_empty_sources(hypotheses, sample["net_input"]["src_tokens"], self.source_dictionary)
        return self._in_reading_order(hypotheses, sample) if self.cfg.reverse_target else hypotheses

    def _inference_with_bleu(self, generator, sample, model):
        """Translate for --eval-bleu, without attention output, which it does not use."""
        with without_attention(model.decoder):
            return super()._inference_with_bleu(generator, sample, model)

    def _in_reading_order(self, hypotheses: list[list[dict]], sample: dict) -> list[list[dict]]:
        dictionary = self.target_dictionary
        if sample.get("target") is not None:
            sample["target"].copy_(reverse_targets(sample["target"], dictionary.pad()))
        return [[reverse_hypothesis(one, dictionary.eos()) for one in found] for found in hypotheses]
