"""The generators of the task `concat_translation`: the choice of the search, the models and the ranking."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy

from fairseq.checkpoint_utils import load_model_ensemble
from fairseq.models import BaseFairseqModel, FairseqDecoder
from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import FairseqTask
from fairseq.utils import split_paths

from lwc_fairseq_compat import UserError

from ..data.reverse import is_reversed
from .agreement import AgreementSearch
from .beam_search import QuickSequenceGenerator, needs_attention
from .ranking import RankedGenerator, choose_ranking

Build = Callable[..., SequenceGenerator | SequenceScorer]


def build_ranked_generator(
    task: FairseqTask, build: Build, models: list[BaseFairseqModel], options, extra: dict | None, *more
) -> RankedGenerator | SequenceScorer:
    """Build a generator from the options of the task and of fairseq's generation.

    Args:
        task: the task `concat_translation`.
        build: fairseq's own `build_generator`, bound to the task.
        models: the models of the ensemble.
        options: fairseq's GenerationConfig or, with --eval-bleu, a Namespace with some of its options.
        extra: additional arguments of the generator's class, from fairseq's commands.
        more: the remaining arguments of `build`.

    Raises:
        UserError: options exclude each other.
    """
    check_options(task, options)
    alpha, unnormalized = option(options, "lenpen", 1.0), option(options, "unnormalized", False)
    ranking = choose_ranking(alpha, task.cfg.gnmt_length_penalty, unnormalized)
    kind = SequenceGenerator if task.cfg.stock_search else QuickSequenceGenerator
    extra = dict(extra or {})
    if alignment := needed_alignment(options):
        kind, extra["print_alignment"] = SequenceGeneratorWithAlignment, alignment
    generator = build(models, options, kind, extra, *more)
    if isinstance(generator, SequenceScorer):
        return generator
    generator.normalize_scores = False  # the ranking divides by the penalty
    if task.cfg.agreement_path:
        reverse_models = place_reverse_models(task, like=models[0])
        reverse_generator = build(reverse_models, options, kind, None)
        generator = AgreementSearch(generator, reverse_generator, reverse_models, task.target_dictionary)
    return RankedGenerator(generator, ranking)


def option(options, name: str, default=None):
    """Return a generation option. With --eval-bleu, fairseq passes only the options that the user sets."""
    return getattr(options, name, default)


def check_options(task: FairseqTask, options) -> None:
    """Raises UserError if options exclude each other."""
    others = [option(options, name) for name in ("print_alignment", "score_reference", "lm_path")]
    others += [task.cfg.reverse_target, option(options, "replace_unk") is not None]
    if task.cfg.agreement_path and any(others):
        raise UserError(
            "--agreement-path cannot be combined with --reverse-target, --print-alignment, --replace-unk, "
            "--score-reference or --lm-path: leave those out (--path names left-to-right models)"
        )


def needed_alignment(options) -> str | None:
    """Return the kind of alignment that hypotheses need: "hard", "soft" or None.

    --replace-unk needs hard alignments, because it replaces each unknown word according to its aligned source word.
    """
    return option(options, "print_alignment") or ("hard" if option(options, "replace_unk") is not None else None)


@contextmanager
def without_attention(decoder: FairseqDecoder) -> Iterator[None]:
    """Turn off a decoder's attention output within the context, so that the search is faster."""
    needed = needs_attention(decoder)
    decoder.need_attn = False
    try:
        yield
    finally:
        decoder.need_attn = needed


def place_reverse_models(task: FairseqTask, like: BaseFairseqModel) -> list[BaseFairseqModel]:
    """Return the models of --agreement-path, with the device and the precision of `like`. The task keeps them, because
    fairseq's interface in Python builds a generator for each call.

    Raises:
        UserError: a model was not trained from right to left.
    """
    if not task.reverse_models:
        task.reverse_models = load_reverse_models(task)
    weight = next(like.parameters())
    return [model.to(device=weight.device, dtype=weight.dtype) for model in task.reverse_models]


def load_reverse_models(task: FairseqTask) -> list[BaseFairseqModel]:
    """Load the models of --agreement-path.

    Raises:
        UserError: a model was not trained from right to left.
    """
    builder = copy(task)  # the task keeps what it knows of the models in --path
    builder.trained_reversed = []
    models = []
    for path in split_paths(task.cfg.agreement_path):
        (model,), saved = load_model_ensemble([path], task=builder)
        if not is_reversed(saved.task):
            raise UserError(
                f"--agreement-path {path}: this model was not trained from right to left; train one with --task "
                "concat_translation --reverse-target"
            )
        model.make_generation_fast_(need_attn=False)
        models.append(model)
    return models
