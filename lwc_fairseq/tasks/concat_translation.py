"""The task `concat_translation`: translation of concatenated, packed sentence pairs, in either target direction.

Letters: B sentences, n source and m target tokens.
"""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.data import Dictionary, LanguagePairDataset, TruncateDataset
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.utils import resolve_max_positions, split_paths
from omegaconf import OmegaConf
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import truncate_source

from ..data.concat_dataset import ConcatPairDataset
from ..data.reverse import is_reversed, reverse_constraints, reverse_hypothesis, reverse_targets, reverse_words
from ..data.reverse_files import ReverseFiles, load_reverse_tokens
from ..models.interface import ReverseContextModel, takes, unwrap
from ..search.agreement import AgreementSearch, load_reverse_models
from ..search.beam_search import QuickSequenceGenerator
from ..search.ranking import RankedGenerator, choose_penalty


@dataclass
class ConcatTranslationConfig(TranslationConfig):
    """The options of fairseq's translation task, and the additional options of this task."""

    reverse_target: bool = field(
        default=False,
        metadata={"help": "trains and generates targets from right to left, and prints them in reading order"},
    )
    gnmt_length_penalty: bool = field(
        default=False,
        metadata={"help": "divides scores by ((5 + length) / 6)^lenpen instead of by length^lenpen"},
    )
    agreement_path: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoints of right-to-left models (trained with `--reverse-target`), which search and rank "
            "together with those of `--path`: the sum of both scores ranks the hypotheses of both"
        },
    )
    stock_search: bool = field(
        default=False,
        metadata={"help": "searches with fairseq's own loop, which finds the same hypotheses but is slower"},
    )
    reverse_from_data: bool = field(
        default=False,
        metadata={
            "help": "in fairseq-generate, `abd`, `abd_rnmt`, `abd_lwc`, `nsc_rt` and `nsc_hs` read the reverse "
            "translations that `lwc-fairseq reverse` has made, instead of searching for them"
        },
    )
    print_reverse: bool = field(
        default=False,
        metadata={
            "help": "prints the reverse translation of `abd`, `abd_rnmt`, `abd_lwc`, `nsc_rt` and `nsc_hs` (in an "
            "ensemble, of the first such model), too, as lines `R-` in sub-words before the other lines of a batch. "
            "fairseq-interactive prints them without numbers"
        },
    )


@register_task("concat_translation", dataclass=ConcatTranslationConfig)
class ConcatTranslationTask(TranslationTask):
    """fairseq's translation task, with pairs ordered and batched by source plus target length.

    --max-tokens limits the number of source plus target tokens of a batch. To a batch of a model that reads the packed
    stream (`lwc_transformer`), the data loader adds the indices of this stream, which it computes on the CPU. To a
    batch of a model that reads reverse translations of the data, it adds these. The task translates an empty line to an
    empty line.
    """

    cfg: ConcatTranslationConfig

    def __init__(self, cfg: ConcatTranslationConfig, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        self.with_packing = False  # whether the model reads the packed stream; build_model sets it
        self.reads_translations = False  # whether losses need reverse translations of the data; build_model sets it
        self.computes_losses = False  # lwc_fairseq_compat sets it in build_criterion
        self.longest_source: int | None = None  # in tokens; build_generator sets it
        self.trained_reversed: list[bool] = []  # of each model from a checkpoint; build_model adds to it
        self.reverse_models: list[BaseFairseqModel] = []  # of --agreement-path; build_generator loads them

    def build_model(self, cfg, from_checkpoint: bool = False):
        """Build the model, set `with_packing`, and note the order of targets that a checkpoint was trained with."""
        if self.cfg.agreement_path and self.cfg.eval_bleu:
            raise UserError("--agreement-path cannot be combined with --eval-bleu: leave it out in training")
        if self.cfg.reverse_from_data and not from_checkpoint:
            raise UserError(
                "--reverse-from-data is an option of fairseq-generate: leave it out in training, which has "
                "--reverse-context translations"
            )
        model = super().build_model(cfg, from_checkpoint)
        self.with_packing = takes(model, "packing")
        self.reads_translations = isinstance(model, ReverseContextModel) and model.reads_translations
        if from_checkpoint:
            # `cfg` is a part of the checkpoint's options or, for a model without a dataclass, all of them.
            trained = cfg if isinstance(cfg, Namespace) else OmegaConf.select(cfg, "..task")
            self.trained_reversed.append(is_reversed(trained))
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, task_cfg=None, **kwargs) -> None:
        """Load a split. `task_cfg` is the task's configuration in the checkpoint, if there is one.

        Raises:
            UserError: --num-batch-buckets is set, or --load-alignments and --reverse-target are both set, or
                --reverse-target differs from the checkpoint's. Or the reverse translations of the split are needed,
                and there are none.
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
            self.check_checkpoint(task_cfg)
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        self.datasets[split] = self._concat(self.datasets[split], self._reverse_tokens(split, epoch, combine))

    def _reverse_tokens(self, split: str, epoch: int, combine: bool) -> Sequence[Tensor] | None:
        """Return the reverse translations of a split, or None if they are not needed."""
        if self.cfg.reverse_from_data:
            option = "--reverse-from-data"
        elif self.reads_translations and self.computes_losses:
            option = "--reverse-context translations"
        else:
            return None
        if self.cfg.reverse_target:
            raise UserError(f"{option} cannot be combined with --reverse-target: leave one of them out")
        languages = self.cfg.source_lang, self.cfg.target_lang
        folders = split_paths(self.cfg.data)[: None if split == self.cfg.train_subset else 1]
        for folder in folders:  # also those of later epochs
            ReverseFiles(folder, split, languages).require(option)
        tokens = load_reverse_tokens(
            folders[(epoch - 1) % len(folders)],
            split,
            languages,
            (self.src_dict, self.tgt_dict),
            option,
            combine=combine,
            upsample_primary=self.cfg.upsample_primary,
            impl=self.cfg.dataset_impl,
        )
        return TruncateDataset(tokens, self.cfg.max_target_positions - 1)

    def check_checkpoint(self, trained) -> None:
        """Raises UserError if --reverse-target differs from `trained`, the task's configuration in a checkpoint."""
        self._check_order([*self.trained_reversed, is_reversed(trained)])

    def _check_order(self, trained_reversed: list[bool]) -> None:
        if len(set(trained_reversed)) == 2:
            raise UserError(
                "--path: some of the models were trained with --reverse-target and some without: name those without it "
                "in --path, and the others in --agreement-path"
            )
        if (not self.cfg.reverse_target) in trained_reversed:
            raise UserError(
                "the checkpoint was trained without --reverse-target: leave out --reverse-target"
                if self.cfg.reverse_target
                else "the checkpoint was trained with --reverse-target: add --reverse-target"
            )

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None) -> ConcatPairDataset:
        """Build fairseq's dataset, with sources that are too long for the models truncated, so that every source is
        translated."""
        if self.cfg.reverse_from_data:
            raise UserError("--reverse-from-data needs binary data, which fairseq-generate reads: leave it out")
        if self.longest_source is not None:
            src_tokens = [truncate_source(tokens, self.longest_source) for tokens in src_tokens]
        pairs = super().build_dataset_for_inference(src_tokens, [len(tokens) for tokens in src_tokens], constraints)
        return self._concat(pairs)

    def _concat(self, pairs: LanguagePairDataset, reverse_tokens: Sequence[Tensor] | None = None) -> ConcatPairDataset:
        padding_idx, reverse_target = self.source_dictionary.pad(), self.cfg.reverse_target
        return ConcatPairDataset(pairs, padding_idx, self.with_packing, reverse_target, reverse_tokens)

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None):
        """Build the search that the options choose, with ranked hypotheses, or a generator of the class `seq_gen_cls`.

        Args:
            args: fairseq's GenerationConfig or, with --eval-bleu, a Namespace of those options that the user sets.

        Raises:
            UserError: options exclude each other, or a model was trained with targets in another order.
        """
        self._check_order(self.trained_reversed)
        if self.cfg.reverse_from_data and not all(isinstance(model, ReverseContextModel) for model in models):
            raise UserError(
                "--reverse-from-data: a model of --path reads no reverse translation; only abd, abd_rnmt, abd_lwc, "
                "nsc_rt and nsc_hs read one"
            )
        limits = [self.max_positions(), *(model.max_positions() for model in models)]
        self.longest_source, longest_target = resolve_max_positions(*limits)
        build = super().build_generator
        if seq_gen_cls is not None:
            return build(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        alignment = getattr(args, "print_alignment", None)
        replaces_unk = getattr(args, "replace_unk", None) is not None
        others = [getattr(args, name, None) for name in ("score_reference", "lm_path")]
        others += [alignment, replaces_unk, self.cfg.reverse_target, self.cfg.reverse_from_data]
        others.append(prefix_allowed_tokens_fn)  # which knows the words before a word, not those after it
        if self.cfg.agreement_path and any(others):
            raise UserError(
                "--agreement-path cannot be combined with --reverse-target, --reverse-from-data, --print-alignment, "
                "--replace-unk, --score-reference, --lm-path or prefix_allowed_tokens_fn: leave those out (--path "
                "names left-to-right models)"
            )
        alpha, unnormalized = getattr(args, "lenpen", 1.0), getattr(args, "unnormalized", False)
        penalty = choose_penalty(alpha, self.cfg.gnmt_length_penalty, unnormalized)
        kind = SequenceGenerator if self.cfg.stock_search else QuickSequenceGenerator
        extra = dict(extra_gen_cls_kwargs or {})
        if alignment or replaces_unk:  # --replace-unk copies the word that an unknown word is aligned to
            kind, extra["print_alignment"] = SequenceGeneratorWithAlignment, alignment or "hard"
        generator = build(models, args, kind, extra, prefix_allowed_tokens_fn)
        if isinstance(generator, SequenceScorer):
            if self.cfg.gnmt_length_penalty:
                raise UserError("--score-reference does not search: leave out --gnmt-length-penalty")
            return generator
        generator.normalize_scores = False  # the ranking divides by the penalty
        if self.cfg.agreement_path:
            # The task keeps the models, because fairseq's interface in Python builds a generator for each call.
            self.reverse_models = self.reverse_models or load_reverse_models(self)
            source, target = resolve_max_positions(*limits, *(model.max_positions() for model in self.reverse_models))
            if (source, target) != (self.longest_source, longest_target):
                raise UserError(
                    f"--agreement-path: its models are limited to {source} source and {target} target tokens, fewer "
                    f"than those of --path: add --max-source-positions {source} --max-target-positions {target}"
                )
            weight = next(models[0].parameters())
            for model in self.reverse_models:
                model.to(device=weight.device, dtype=weight.dtype)
            reverse_generator = build(self.reverse_models, args, kind, None)
            generator = AgreementSearch(generator, reverse_generator, self.reverse_models, self.target_dictionary)
        return RankedGenerator(generator, penalty)

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Return hypotheses in reading order. The batch's target, which fairseq prints afterwards, changes to reading
        order as well."""
        # Only training uses the packing, and fairseq's own models in an ensemble do not accept it. Losses alone use
        # reverse translations of the data, unless they are read instead of a search. fairseq may use the batch again.
        for_losses = {"packing"} if self.cfg.reverse_from_data else {"packing", "reverse_tokens"}
        inputs = {name: value for name, value in sample["net_input"].items() if name not in for_losses}
        sample = {**sample, "net_input": inputs}
        if self.cfg.print_reverse:
            dictionaries = self.source_dictionary, self.target_dictionary
            print(*reverse_lines(models, sample, dictionaries, self.cfg.reverse_target), sep="\n")
        if self.cfg.reverse_target and constraints is not None:
            constraints = reverse_constraints(constraints)
        hypotheses = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if not isinstance(generator, SequenceScorer):
            translate_empty_sources(hypotheses, sample["net_input"]["src_tokens"], self.source_dictionary)
        if not self.cfg.reverse_target:
            return hypotheses
        if isinstance(generator, SequenceScorer):  # its attention is (m, n), that of searches (n, m)
            for (hypothesis,) in hypotheses:
                if hypothesis["attention"] is not None:
                    hypothesis["attention"] = hypothesis["attention"].T
        pad, eos = self.target_dictionary.pad(), self.target_dictionary.eos()
        if sample.get("target") is not None:
            sample["target"].copy_(reverse_targets(sample["target"], pad))
        return [[reverse_hypothesis(hypothesis, eos) for hypothesis in of_sentence] for of_sentence in hypotheses]

    def _inference_with_bleu(self, generator, sample, model):
        """Translate for --eval-bleu, without attention output, which it does not use and which makes searches slow."""
        needed = getattr(model.decoder, "need_attn", False)
        model.decoder.need_attn = False
        try:
            return super()._inference_with_bleu(generator, sample, model)
        finally:
            model.decoder.need_attn = needed


def has_no_words(src_tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """Return (B,), True for sources (B, n) that contain only padding and end symbols."""
    return (src_tokens.eq(dictionary.pad()) | src_tokens.eq(dictionary.eos())).all(1)


def translate_empty_sources(hypotheses: list[list[dict]], src_tokens: Tensor, dictionary: Dictionary) -> None:
    """Replace the hypotheses of each empty source (B, n) by one empty hypothesis of probability 1.

    `hypotheses` holds the hypotheses of each sentence. It is changed in place.
    """
    for i in has_no_words(src_tokens, dictionary).nonzero().flatten().tolist():
        best = hypotheses[i][0]
        empty = {
            "tokens": best["tokens"].new_tensor([dictionary.eos()]),
            "score": torch.zeros_like(best["score"]),
            "positional_scores": best["positional_scores"].new_zeros(1),
            "attention": best["attention"][..., :1],
            "alignment": [],
        }
        hypotheses[i] = [{**best, **empty}]


@torch.no_grad()
def reverse_lines(
    models: list[BaseFairseqModel], sample: dict, dictionaries: tuple[Dictionary, Dictionary], reverse_target: bool
) -> list[str]:
    """Return the lines `R-` of --print-reverse for a batch.

    A line holds the number of a sentence, if the command numbers sentences, and its reverse translation in reading
    order. The reverse translation is that of the first model that has one.

    Args:
        dictionaries: the source and the target dictionary.
        reverse_target: whether the models' targets are from right to left; their reverse translations are then in
            reading order.

    Raises:
        UserError: no model has a reverse translation.
    """
    model = next((model for model in map(unwrap, models) if isinstance(model, ReverseContextModel)), None)
    if model is None:
        raise UserError(
            "--print-reverse: these models have no reverse translation; only abd, abd_rnmt, abd_lwc, nsc_rt and nsc_hs "
            "have one"
        )
    src_tokens, (source, target) = sample["net_input"]["src_tokens"], dictionaries
    rows = sample["net_input"].get("reverse_tokens")  # (B, m), padded on the right
    rows = (model.reverse_translations(src_tokens) if rows is None else rows).cpu()  # one copy instead of one a token
    numbers = sample["id"].tolist() if "id" in sample else [""] * len(rows)
    lines = []
    for number, row, is_empty in zip(numbers, rows, has_no_words(src_tokens, source).tolist(), strict=True):
        words = row[:0] if is_empty else row[row.ne(target.pad()) & row.ne(target.eos())]
        words = words if reverse_target else reverse_words(words, target.eos())
        lines.append(f"R-{number}\t{target.string(words)}")
    return lines
