"""The interface of loaded models in Python, and its options."""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypedDict, Unpack, get_type_hints

import torch
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import truncate_source
from lwc_fairseq_compat.search_options import check_names_and_types, check_search


class SearchOptions(TypedDict, total=False):
    """The options of a search besides `beam`. The defaults are those of fairseq-generate, except `print_alignment`."""

    max_len_a: float
    """With `max_len_b`: the longest translation of a source of n tokens has max_len_a · n + max_len_b words."""
    max_len_b: int
    """See `max_len_a`. By default, 200 words."""
    min_len: int
    """The least number of words of a translation; by default 1."""
    lenpen: float
    """The power of the length penalty: more than 1, the default, favours long translations."""
    unnormalized: bool
    """Compare translations without a length penalty."""
    unkpen: float
    """The penalty of unknown words; below 0 it favours them."""
    temperature: float
    """Above 1, the probabilities are more even; below 1, more peaked."""
    no_repeat_ngram_size: int
    """No sequence of so many words may occur twice in a translation."""
    match_source_len: bool
    """Translations have as many words as their sources."""
    sampling: bool
    """Draw `beam` translations at random, instead of searching for the best ones."""
    sampling_topk: int
    """Draw from so many most probable words."""
    sampling_topp: float
    """Draw from the most probable words that together have this probability."""
    diverse_beam_groups: int
    """Search in so many groups of the beam, which differ from each other."""
    diverse_beam_strength: float
    """How much the groups differ; by default 0.5."""
    diversity_rate: float
    """The penalty of words that continue the same hypothesis."""


class GenerateOptions(SearchOptions, total=False):
    """The options of `Translator.generate`."""

    print_alignment: Literal["hard", "soft"]
    """Fill "attention" and "alignment" of the hypotheses: pairs of positions (hard), or all weights (soft)."""


class Translator(GeneratorHubInterface):
    """fairseq's interface, which checks what it is given. It truncates a source that is too long for the models, and
    keeps its end symbol."""

    def __init__(self, cfg: DictConfig, task: FairseqTask, models: list[BaseFairseqModel]):
        super().__init__(cfg, task, models)
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        """Return what pickle and copy take: all but the lock."""
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self.lock = threading.RLock()

    def translate(
        self, sentences: str | Iterable[str], beam: int = 5, verbose: bool = False, **options: Unpack[SearchOptions]
    ) -> str | list[str]:
        """Translate sentences.

        Args:
            sentences: one sentence, or several.
            beam: the number of hypotheses that the search follows.
            verbose: log the hypotheses.
            options: see :class:`SearchOptions`.

        Returns:
            The translation of the sentence, or a list of those of several.

        Raises:
            UserError: an argument is invalid, or there is no such option.
        """
        check_options("translate", SearchOptions, beam, options, len(self.tgt_dict))
        if isinstance(sentences, str):
            return self.translate([sentences], beam, verbose, **options)[0]
        encoded = [self.encode(line) for line in check_lines(sentences)]
        return [self.decode(best["tokens"]) for best, *_ in self.generate(encoded, beam, verbose, **options)]

    def sample(
        self, sentences: str | Iterable[str], beam: int = 1, verbose: bool = False, **options: Unpack[SearchOptions]
    ) -> str | list[str]:
        """Translate sentences, with another default of `beam` than :meth:`translate`."""
        return self.translate(sentences, beam, verbose, **options)

    def score(self, *sentences, **options) -> None:
        """Raises UserError: fairseq's method is for language models."""
        raise UserError("score: is for language models: use fairseq-generate --score-reference on binary data")

    def generate(
        self,
        tokenized_sentences: Tensor | Sequence[Tensor],
        beam: int = 5,
        verbose: bool = False,
        skip_invalid_size_inputs: bool = False,
        inference_step_args: dict[str, object] | None = None,
        prefix_allowed_tokens_fn: Callable[[int, Tensor], list[int]] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> list[list[dict[str, Tensor]]]:
        """Return the hypotheses of sentences, best first, with their scores. Only one thread at a time does so.

        Args:
            tokenized_sentences: the tokens of each sentence, as `encode` returns them, or those of one.
            beam: the number of hypotheses that the search follows, and returns.
            verbose: log the hypotheses.
            skip_invalid_size_inputs: leave out sentences that are too long, instead of raising an error.
            inference_step_args: none but "prefix_tokens", the beginnings of the translations.
            prefix_allowed_tokens_fn: see fairseq's `build_generator`.
            options: see :class:`GenerateOptions`.

        Raises:
            UserError: an argument is invalid, or there is no such option.
        """
        check_options("generate", GenerateOptions, beam, options, len(self.tgt_dict))
        if unknown := set(inference_step_args or {}) - {"prefix_tokens"}:
            raise UserError(
                f"generate: inference_step_args: {', '.join(sorted(unknown))}: give prefix_tokens or nothing "
                "(fairseq-interactive reads constraints)"
            )
        if not (prefix_allowed_tokens_fn is None or callable(prefix_allowed_tokens_fn)):
            raise UserError(f"generate: prefix_allowed_tokens_fn {prefix_allowed_tokens_fn!r}: give a function")
        if isinstance(tokenized_sentences, Tensor) and tokenized_sentences.dim() == 1:
            arguments = skip_invalid_size_inputs, inference_step_args, prefix_allowed_tokens_fn
            return self.generate([tokenized_sentences], beam, verbose, *arguments, **options)[0]
        sources = check_tokens(tokenized_sentences, len(self.src_dict))
        if not sources:
            return []
        with self.lock:
            return super().generate(
                sources,
                beam,
                verbose,
                skip_invalid_size_inputs,
                inference_step_args,
                prefix_allowed_tokens_fn,
                **options,
            )

    def binarize(self, sentence: str) -> Tensor:
        tokens = super().binarize(sentence)
        longest, _ = self.max_positions
        return truncate_source(tokens, longest)


def check_options(method: str, known: type, beam: int, options: dict[str, object], types: int) -> None:
    """Check the options of a search.

    Args:
        method: the method that they are arguments of.
        known: a TypedDict of the options that there are besides `beam`.
        types: the number of types in the target vocabulary.

    Raises:
        UserError: there is no option of a name, or a value is impossible.
    """
    given = {"beam": beam, **options}
    check_names_and_types(given, method, known=["beam", *get_type_hints(known)])
    check_search(given, method, types)


def check_lines(sentences: Iterable[str]) -> list[str]:
    """Return sentences as a list.

    Raises:
        UserError: they are not strings.
    """
    if not isinstance(sentences, Iterable) or isinstance(sentences, bytes):
        raise UserError(f"translate: sentences: a {type(sentences).__name__}: give a string, or a list of strings")
    lines = list(sentences)
    for number, line in enumerate(lines):
        if not isinstance(line, str):
            raise UserError(f"translate: sentences: number {number} (from 0) is a {type(line).__name__}: give strings")
    return lines


def check_tokens(sources: Iterable[Tensor], types: int) -> list[Tensor]:
    """Return tokenized sentences as a list.

    Args:
        types: the number of types in the source vocabulary.

    Raises:
        UserError: they are no tensors (n,) of numbers of types.
    """
    if not isinstance(sources, Iterable) or (isinstance(sources, Tensor) and sources.dim() == 0):
        raise UserError(f"generate: tokenized_sentences: a {type(sources).__name__}: give tensors, as encode returns")
    tokens = list(sources)
    for number, row in enumerate(tokens):
        where = f"generate: tokenized_sentences: number {number} (from 0)"
        if not isinstance(row, Tensor):
            raise UserError(f"{where} is a {type(row).__name__}: give tensors, as encode returns them")
        if row.dim() != 1 or not len(row) or row.dtype not in (torch.int64, torch.int32):
            raise UserError(f"{where} has shape {tuple(row.shape)} and {row.dtype}: give whole numbers, (n,), n > 0")
        if row.min() < 0 or row.max() >= types:
            raise UserError(f"{where}: the numbers of types must be from 0 to {types - 1}")
    return tokens
