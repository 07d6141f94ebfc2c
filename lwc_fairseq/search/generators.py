"""The generators of the task `concat_translation`: which search, with which models, ranked how."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    """A generator for the options of the task and of fairseq's generation.

    Args:
        task: `concat_translation`.
        build: fairseq's `build_generator` of the task.
        models: an ensemble.
        options: fairseq's GenerationConfig, or for --eval-bleu a Namespace with some of its options.
        extra: more arguments of the generator's class, from fairseq's commands.
        more: the other arguments of `build`.

    Raises:
        UserError: options exclude each other.
    """
    check_options(task, options)
    alpha, unnormalized = option(options, "lenpen", 1.0), option(options, "unnormalized", False)
    ranking = choose_ranking(alpha, task.cfg.gnmt_length_penalty, unnormalized)
    kind = SequenceGenerator if task.cfg.stock_search else QuickSequenceGenerator
    extra = dict(extra or {})
    if alignment := needed_alignment(options, models):
        kind, extra["print_alignment"] = SequenceGeneratorWithAlignment, alignment
    generator = build(models, options, kind, extra, *more)
    if isinstance(generator, SequenceScorer):
        return generator
    generator.normalize_scores = False  # the ranking divides by the penalty
    if task.cfg.agreement_path:
        reverse_models = load_reverse_models(task, like=models[0])
        reverse_generator = build(reverse_models, options, kind, None)
        generator = AgreementSearch(generator, reverse_generator, reverse_models, task.target_dictionary)
    return RankedGenerator(generator, ranking)


def option(options, name: str, default=None):
    """An option of generation. With --eval-bleu, fairseq passes only the options that the user gives."""
    return getattr(options, name, default)


def check_options(task: FairseqTask, options) -> None:
    """Raises UserError if options exclude each other."""
    if option(options, "retain_iter_history"):
        raise UserError(
            "--retain-iter-history is for models that refine their translations; these keep none: leave it out"
        )
    others = [option(options, name) for name in ("print_alignment", "score_reference", "lm_path")]
    others += [task.cfg.reverse_target, option(options, "replace_unk") is not None]
    if task.cfg.agreement_path and any(others):
        raise UserError(
            "--agreement-path goes with none of --reverse-target, --print-alignment, --replace-unk, --score-reference "
            "and --lm-path: leave those out (--path names left-to-right models)"
        )


def needed_alignment(options, models: list[BaseFairseqModel]) -> str | None:
    """Which alignment hypotheses need: "hard", "soft" or none.

    --replace-unk needs the hard one, since each unknown word is replaced by what its source word stands for. Without
    --print-alignment fairseq has told the models that nobody needs their attention; this tells them otherwise.
    """
    alignment = option(options, "print_alignment")
    if alignment or option(options, "replace_unk") is None:
        return alignment
    for model in models:
        model.decoder.need_attn = True
    return "hard"


@contextmanager
def without_attention(decoder: FairseqDecoder) -> Iterator[None]:
    """Let a decoder return no attention for a while, so that the search is faster."""
    needed = needs_attention(decoder)
    decoder.need_attn = False
    try:
        yield
    finally:
        decoder.need_attn = needed


def load_reverse_models(task: FairseqTask, like: BaseFairseqModel) -> list[BaseFairseqModel]:
    """The models of --agreement-path, with the device and the precision of `like`.

    Raises:
        UserError: one of them is not from right to left.
    """
    weight = next(like.parameters())
    models = []
    for path in split_paths(task.cfg.agreement_path):
        (model,), saved = load_model_ensemble([path], task=task)
        if not is_reversed(saved.task):
            raise UserError(
                f"--agreement-path {path}: this model was not trained from right to left; train one with --task "
                "concat_translation --reverse-target"
            )
        model.to(device=weight.device, dtype=weight.dtype).eval()
        model.make_generation_fast_(need_attn=False)
        models.append(model)
    return models
