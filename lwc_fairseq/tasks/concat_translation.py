"""The task `concat_translation`: translation of concatenated, packed sentence pairs, in either target direction."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.checkpoint_utils import load_model_ensemble
from fairseq.data import LanguagePairDataset
from fairseq.models import BaseFairseqModel, FairseqDecoder
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.token_generation_constraints import pack_constraints, unpack_constraints
from fairseq.utils import resolve_max_positions, split_paths
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.concat_dataset import ConcatPairDataset, reverse_tokens
from ..models.interface import TranslationModel
from ..models.reverse_context import ReverseContextModel
from ..search.agreement import AgreementSearch
from ..search.beam_search import QuickSequenceGenerator
from ..search.length_penalty import (
    GNMTSequenceGenerator,
    GNMTSequenceGeneratorWithAlignment,
    StockGNMTSequenceGenerator,
)

logger = logging.getLogger(__name__)


@dataclass
class ConcatTranslationConfig(TranslationConfig):
    """fairseq's translation task, and a few options."""

    reverse_target: bool = field(
        default=False,
        metadata={"help": "train and generate targets from right to left; hypotheses are printed in reading order"},
    )
    gnmt_length_penalty: bool = field(
        default=False,
        metadata={"help": "divide a hypothesis' score by ((5 + length) / 6)^lenpen instead of by length^lenpen"},
    )
    agreement_path: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint(s) of right-to-left models, trained with --reverse-target: what they and the models of "
            "--path find is ranked by the sum of both scores"
        },
    )
    stock_search: bool = field(
        default=False,
        metadata={"help": "generate with fairseq's own beam search: slower, with the same results"},
    )
    print_reverse: bool = field(
        default=False,
        metadata={
            "help": "also print the reverse translation of abd and nsc models (of an ensemble, the first) to standard "
            "output, as lines R- in sub-words, before the others of its batch; fairseq-interactive has no numbers "
            "for them"
        },
    )


@register_task("concat_translation", dataclass=ConcatTranslationConfig)
class ConcatTranslationTask(TranslationTask):
    """fairseq's translation task with pairs ordered and batched by source plus target length.

    --max-tokens bounds source plus target tokens of a batch. Models that read the packed stream
    (`lwc_transformer`) get its indices with the batch, made on the CPU by the data loader; other models are trained
    as by fairseq's own task. An empty line is translated to an empty line.
    """

    cfg: ConcatTranslationConfig

    def build_model(self, cfg, from_checkpoint: bool = False):
        if self.cfg.agreement_path and self.cfg.eval_bleu:
            raise UserError("--agreement-path is for generation, not for --eval-bleu: leave it out in training")
        model = super().build_model(cfg, from_checkpoint)
        self.with_packing = isinstance(model, TranslationModel) and model.reads_packing
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, task_cfg=None, **kwargs) -> None:
        """Load a split; `task_cfg` is the task's configuration in a checkpoint, where there is one."""
        if self.cfg.num_batch_buckets:
            raise UserError(
                f"--num-batch-buckets {self.cfg.num_batch_buckets}: concat_translation packs instead of padding; "
                "leave the flag out"
            )
        trained_reversed = getattr(task_cfg, "reverse_target", False)
        if task_cfg is not None and trained_reversed != self.cfg.reverse_target:
            raise UserError(
                f"the checkpoint was trained {'with' if trained_reversed else 'without'} --reverse-target: "
                f"{'add' if trained_reversed else 'leave out'} --reverse-target"
            )
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        self.datasets[split] = self._concat(self.datasets[split])

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None) -> ConcatPairDataset:
        """As fairseq's, with sentences that are too long for the models cut: each has its translation, in its place."""
        src_tokens = [self._cut(tokens) for tokens in src_tokens]
        src_lengths = [len(tokens) for tokens in src_tokens]
        return self._concat(super().build_dataset_for_inference(src_tokens, src_lengths, constraints))

    def _cut(self, tokens: Tensor) -> Tensor:
        limit = getattr(self, "longest_source", len(tokens))
        if len(tokens) <= limit:
            return tokens
        logger.warning(
            f"a source of {len(tokens)} tokens, more than --max-source-positions or the models allow: only the first "
            f"{limit} are translated"
        )
        return torch.cat([tokens[: limit - 1], tokens[-1:]])

    def _concat(self, pairs: LanguagePairDataset) -> ConcatPairDataset:
        return ConcatPairDataset(
            pairs,
            self.source_dictionary.pad(),
            with_packing=getattr(self, "with_packing", False),
            reverse_target=self.cfg.reverse_target,
        )

    def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None):
        if getattr(args, "retain_iter_history", False):
            raise UserError(
                "--retain-iter-history is for models that refine their translations; these keep none: leave it out"
            )
        limits = [self.max_positions(), *(model.max_positions() for model in models)]
        self.longest_source, _ = resolve_max_positions(*limits)
        alignment = getattr(args, "print_alignment", None)
        if getattr(args, "replace_unk", None) is not None and not alignment:
            # each unknown word is replaced by what the word that it is aligned to stands for
            alignment = "hard"
            for model in models:
                model.decoder.need_attn = True
        if seq_gen_cls is None:
            seq_gen_cls = self._generator_class(args, alignment)
            if alignment:
                extra_gen_cls_kwargs = {**(extra_gen_cls_kwargs or {}), "print_alignment": alignment}
        build = super().build_generator
        generator = build(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        if self.cfg.agreement_path is None:
            return generator
        reverse_models = self._load_reverse_models(args, like=models[0])
        return AgreementSearch(
            generator, build(reverse_models, args, seq_gen_cls), reverse_models, self.target_dictionary
        )

    def _generator_class(self, args, alignment: str | None) -> type[SequenceGenerator]:
        if self.cfg.gnmt_length_penalty:
            if getattr(args, "unnormalized", False):
                raise UserError("--gnmt-length-penalty and --unnormalized exclude each other: leave one out")
            if alignment:
                return GNMTSequenceGeneratorWithAlignment
            return StockGNMTSequenceGenerator if self.cfg.stock_search else GNMTSequenceGenerator
        if alignment:
            return SequenceGeneratorWithAlignment
        return SequenceGenerator if self.cfg.stock_search else QuickSequenceGenerator

    def _load_reverse_models(self, args, like: BaseFairseqModel) -> list[BaseFairseqModel]:
        others = [getattr(args, name, None) for name in ("print_alignment", "score_reference", "lm_path")]
        others += [
            self.cfg.reverse_target,
            self.cfg.gnmt_length_penalty,
            getattr(args, "replace_unk", None) is not None,
        ]
        if any(others):
            raise UserError(
                "--agreement-path goes with none of --reverse-target, --gnmt-length-penalty, --print-alignment, "
                "--replace-unk, --score-reference and --lm-path: leave those out (--path names left-to-right models)"
            )
        models = []
        for path in split_paths(self.cfg.agreement_path):
            (model,), saved = load_model_ensemble([path], task=self)
            if not getattr(saved.task, "reverse_target", False):
                raise UserError(
                    f"--agreement-path {path}: this model was not trained from right to left; train one with --task "
                    "concat_translation --reverse-target"
                )
            models.append(model)
        weight = next(like.parameters())
        for model in models:
            model.to(device=weight.device, dtype=weight.dtype).eval()
            model.make_generation_fast_(need_attn=False)
        return models

    def inference_step(self, generator, models, sample, prefix_tokens=None, constraints=None):
        """Hypotheses in reading order. A batch with a target is left in reading order, too: it is printed next."""
        # the packed pair serves training alone; and an ensemble may hold models that know nothing of it
        sample["net_input"].pop("packing", None)
        if self.cfg.reverse_target and constraints is not None:
            constraints = reverse_constraints(constraints)
        if self.cfg.print_reverse:
            self._print_reverse(models, sample)
        hypotheses = super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if isinstance(generator, (SequenceGenerator, AgreementSearch)):
            self._empty_where_source_is_empty(hypotheses, sample["net_input"]["src_tokens"])
        if self.cfg.reverse_target:
            self._restore_reading_order(hypotheses, sample)
        return hypotheses

    def _inference_with_bleu(self, generator, sample, model):
        """Of --eval-bleu, which never shows attention."""
        with without_attention(model.decoder):
            return super()._inference_with_bleu(generator, sample, model)

    @torch.no_grad()
    def _print_reverse(self, models, sample: dict) -> None:
        """The reverse translation of each sentence, in reading order, under its number if the command numbers them."""
        dictionary = self.target_dictionary
        reverse_models = [model for model in models if isinstance(model, ReverseContextModel)]
        if not reverse_models:
            raise UserError("--print-reverse: these models have no reverse translation; it is for abd, nsc_rt, nsc_hs")
        rows = reverse_models[0].reverse_translations(sample["net_input"]["src_tokens"])
        numbers = sample["id"].tolist() if "id" in sample else [""] * len(rows)
        is_empty = self._words(sample["net_input"]["src_tokens"]).eq(0).tolist()
        for number, row, empty in zip(numbers, rows, is_empty, strict=True):
            words = row[row.ne(dictionary.pad()) & row.ne(dictionary.eos())]
            words = words[:0] if empty else words if self.cfg.reverse_target else words.flip(0)
            print(f"R-{number}\t{dictionary.string(words)}")

    def _empty_where_source_is_empty(self, hypotheses: list[list[dict]], src_tokens: Tensor) -> None:
        for i in self._words(src_tokens).eq(0).nonzero().flatten().tolist():
            hypotheses[i] = [empty_hypothesis(hypotheses[i][0], self.source_dictionary.eos())]

    def _words(self, src_tokens: Tensor) -> Tensor:
        """How many words each source has, (B,)."""
        dictionary = self.source_dictionary
        return (src_tokens.ne(dictionary.pad()) & src_tokens.ne(dictionary.eos())).sum(1)

    def _restore_reading_order(self, hypotheses: list[list[dict]], sample: dict) -> None:
        eos, pad = self.target_dictionary.eos(), self.target_dictionary.pad()
        for beam in hypotheses:
            for i, hypothesis in enumerate(beam):
                beam[i] = reverse_hypothesis(hypothesis, eos)
        if sample.get("target") is not None:
            for row in sample["target"]:
                words = row.ne(pad)
                row[words] = reverse_tokens(row[words], eos)


@contextmanager
def without_attention(decoder: FairseqDecoder) -> Iterator[None]:
    """A decoder that, for a while, does not hand out its attention, so that it can be searched more quickly."""
    wanted = getattr(decoder, "need_attn", False)
    decoder.need_attn = False
    try:
        yield
    finally:
        decoder.need_attn = wanted


def empty_hypothesis(like: dict, eos: int) -> dict:
    """The hypothesis of no words and certain, with the fields of `like`."""
    return {
        **like,
        "tokens": like["tokens"].new_tensor([eos]),
        "score": torch.zeros_like(like["score"]),
        "positional_scores": like["positional_scores"].new_zeros(1),
        "attention": like["attention"][..., :1],
        "alignment": [],
    }


def reverse_hypothesis(hypothesis: dict, eos: int) -> dict:
    """A hypothesis decoded from right to left, in reading order: tokens, scores, attention and alignment."""
    tokens = hypothesis["tokens"]
    words = len(tokens) - int(len(tokens) > 0 and tokens[-1].item() == eos)
    order = torch.cat([torch.arange(words).flip(0), torch.arange(words, len(tokens))]).to(tokens.device)
    attention, alignment = hypothesis["attention"], hypothesis["alignment"]
    if attention is not None and attention.numel():
        attention = attention[:, order]
    if isinstance(alignment, list) and alignment:
        if isinstance(alignment[0], tuple):  # hard: (source, target) word pairs
            alignment = sorted((source, words - 1 - target) for source, target in alignment)
        else:  # soft: a row of weights for each token
            alignment = [alignment[i] for i in order.tolist()]
    return {
        **hypothesis,
        "tokens": tokens[order],
        "positional_scores": hypothesis["positional_scores"][order],
        "attention": attention,
        "alignment": alignment,
    }


def reverse_constraints(constraints: Tensor) -> Tensor:
    """fairseq's packed target constraints (B, ...) from right to left: the phrases, and the words of each."""
    return pack_constraints([[phrase.flip(0) for phrase in unpack_constraints(row)[::-1]] for row in constraints])
