"""Trained models in Python: `load(checkpoint).translate(["…"])`."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack, get_type_hints

import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.hub_utils import GeneratorHubInterface, from_pretrained
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import DictConfig
from omegaconf.errors import ValidationError
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import truncate_source
from lwc_fairseq_compat.dictionaries import IS_SKIPPED, skipped_check
from lwc_fairseq_compat.precision import log_if_slower
from lwc_fairseq_compat.search_options import check_names_and_types, check_search, check_type

from .packs import MODEL, is_address, is_pack, unpack
from .preparation import Words, check_direction, make_subwords, read_preparation

logger = logging.getLogger(__name__)

Source = str | os.PathLike


class Settings(TypedDict, total=False):
    """Options of the task and of batches that override those in the checkpoint."""

    source_lang: str  #: the language of the sources, as in the names of the data's files
    target_lang: str  #: the language of the translations
    gnmt_length_penalty: bool  #: divide a hypothesis' score by ((5 + length) / 6)^lenpen instead of length^lenpen
    agreement_path: str  #: right-to-left models, separated by colons: rank by the sum of both directions' scores
    stock_search: bool  #: use fairseq's own beam search, which finds the same hypotheses but is slower
    batch_size: int | None  #: the most sentences of a batch; None for no limit
    max_tokens: int | None  #: the most tokens of a batch; None for no limit


class SearchOptions(TypedDict, total=False):
    """The options of a search besides `beam`. The defaults are those of fairseq-generate."""

    max_len_a: float  #: the translation of a source of n tokens has at most max_len_a · n + max_len_b tokens
    max_len_b: int  #: by default 200
    min_len: int  #: the least number of words of a translation; by default 1
    lenpen: float  #: the power of the length penalty: more than 1, the default, favours long translations
    unnormalized: bool  #: compare translations without a length penalty
    unkpen: float  #: the penalty of unknown words; below 0 it favours them
    temperature: float  #: above 1, the probabilities are more even; below 1, more peaked
    no_repeat_ngram_size: int  #: no sequence of so many words may occur twice in a translation
    match_source_len: bool  #: translations have as many words as their sources
    sampling: bool  #: draw `beam` translations at random, instead of searching for the best ones
    sampling_topk: int  #: draw from so many most probable words
    sampling_topp: float  #: draw from the most probable words that together have this probability
    diverse_beam_groups: int  #: search in so many groups of the beam, which differ from each other
    diverse_beam_strength: float  #: how much the groups differ; by default 0.5
    diversity_rate: float  #: the penalty of words that continue the same hypothesis


class GenerateOptions(SearchOptions, total=False):
    """The options of `Translator.generate`. With `attention`, `load` makes "hard" the default of `print_alignment`."""

    print_alignment: Literal["hard", "soft"]  #: fill "attention", and "alignment" with pairs (hard) or weights (soft)


class Translator(GeneratorHubInterface):
    """fairseq's interface, with checks of all arguments. `encode` and `binarize` truncate a source that is too long for
    the models, but keep its end symbol."""

    def __init__(self, cfg: DictConfig, task: FairseqTask, models: list[BaseFairseqModel]):
        super().__init__(cfg, task, models)
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}  # which cannot be copied

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self.lock = threading.RLock()

    def translate(
        self, sentences: str | Iterable[str], beam: int = 5, verbose: bool = False, **options: Unpack[SearchOptions]
    ) -> str | list[str]:
        """Return the translation of a sentence, or a list of those of several.

        Args:
            beam: the number of hypotheses that the search follows.
            verbose: log the sources, and the hypotheses with their scores.

        Raises:
            UserError: an argument is invalid, or there is no such option.
        """
        self._check_options("translate", SearchOptions, beam, options)
        if isinstance(sentences, str):
            return self.translate([sentences], beam, verbose, **options)[0]
        if not isinstance(sentences, Iterable) or isinstance(sentences, bytes):
            raise UserError(f"translate: sentences: a {type(sentences).__name__}: give a string, or a list of strings")
        lines = list(sentences)
        for i, line in enumerate(lines):
            if not isinstance(line, str):
                raise UserError(f"translate: sentences: number {i} (from 0) is a {type(line).__name__}: give strings")
        encoded = [self.encode(line) for line in lines]
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
    ) -> list:
        """Return the hypotheses of sentences, best first, as dictionaries. Only one thread at a time does so.

        Args:
            tokenized_sentences: the tokens of each sentence, as `encode` returns them, or those of one.
            beam: the number of hypotheses that the search follows, and returns.
            verbose: log the sources, and the hypotheses with their scores.
            skip_invalid_size_inputs: has no effect, because sentences that are too long are truncated.
            inference_step_args: none but "prefix_tokens", (B, L), the beginnings of the translations, with padding
                where they end. For a right-to-left model, they are the ends of the translations, the last word first.
                Sentences are then translated one by one.
            prefix_allowed_tokens_fn: see fairseq's `build_generator`.

        Raises:
            UserError: an argument is invalid, or there is no such option.
        """
        self._check_options("generate", GenerateOptions, beam, options)
        if unknown := set(inference_step_args or {}) - {"prefix_tokens"}:
            raise UserError(
                f"generate: inference_step_args: {', '.join(sorted(unknown))}: give prefix_tokens or nothing "
                "(fairseq-interactive reads constraints)"
            )
        if not (prefix_allowed_tokens_fn is None or callable(prefix_allowed_tokens_fn)):
            raise UserError(f"generate: prefix_allowed_tokens_fn {prefix_allowed_tokens_fn!r}: give a function")
        others = beam, verbose, skip_invalid_size_inputs, inference_step_args, prefix_allowed_tokens_fn
        if isinstance(tokenized_sentences, Tensor) and tokenized_sentences.dim() == 1:
            return self.generate([tokenized_sentences], *others, **options)[0]
        sources = check_tokens(tokenized_sentences, len(self.src_dict))
        if not sources:
            return []
        if inference_step_args:
            prefixes = inference_step_args["prefix_tokens"]
            if not (isinstance(prefixes, Tensor) and prefixes.dim() == 2 and len(prefixes) == len(sources)):
                what = f"give a tensor with a row for each of {len(sources)} sentences"
                raise UserError(f"generate: inference_step_args: prefix_tokens: {what}")
            check_tokens(prefixes, len(self.tgt_dict), "inference_step_args: prefix_tokens")
            if len(sources) > 1:  # fairseq sorts sentences by length, but not their prefixes
                hypotheses = []
                for number, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
                    allowed = prefix_allowed_tokens_fn and partial(call_for, prefix_allowed_tokens_fn, number)
                    others = beam, verbose, False, {"prefix_tokens": prefix[None]}, allowed
                    hypotheses += self.generate([source], *others, **options)
                return hypotheses
            inference_step_args = {"prefix_tokens": prefixes.to(self.device)}
        arguments = {"inference_step_args": inference_step_args, "prefix_allowed_tokens_fn": prefix_allowed_tokens_fn}
        with self.lock:  # not verbose, because fairseq logs source words from the target's dictionary
            generated = super().generate(sources, beam, **arguments, **options)
        for source, hypotheses in zip(sources, generated, strict=True) if verbose else ():
            logger.info(f"S\t{self.src_dict.string(source)}")
            for hypothesis in hypotheses:
                logger.info(f"H\t{hypothesis['score']}\t{self.decode(hypothesis['tokens'])}")
        return generated

    def string(self, tokens: Tensor) -> str:
        # From a GPU, the dictionary would fetch them one by one.
        return super().string(tokens.cpu() if isinstance(tokens, Tensor) else tokens)

    def binarize(self, sentence: str) -> Tensor:
        longest, _ = self.max_positions
        return truncate_source(super().binarize(sentence), longest)

    def _check_options(self, method: str, known: type, beam: int, options: Mapping[str, object]) -> None:
        """Raises UserError if `known` does not declare one of `options`, or if a value is impossible."""
        given = {"beam": beam, **options}
        check_names_and_types(given, method, known=["beam", *get_type_hints(known)])
        check_search(given, method, len(self.tgt_dict))


def call_for(function: Callable[[int, Tensor], list[int]], number: int, _: int, tokens: Tensor) -> list[int]:
    """Call `prefix_allowed_tokens_fn` for a sentence that is translated alone, with its number in the whole batch."""
    return function(number, tokens)


def check_tokens(sources: Iterable[Tensor], types: int, name: str = "tokenized_sentences") -> list[Tensor]:
    """Return tokenized sentences, the argument `name` of `generate`, as a list.

    Raises:
        UserError: they are no tensors (n,) of whole numbers below `types`, the size of the vocabulary.
    """
    if not isinstance(sources, Iterable) or (isinstance(sources, Tensor) and sources.dim() == 0):
        raise UserError(f"generate: {name}: a {type(sources).__name__}: give tensors, as encode returns")
    tokens = list(sources)
    for number, row in enumerate(tokens):
        where = f"generate: {name}: number {number} (from 0)"
        if not isinstance(row, Tensor):
            raise UserError(f"{where} is a {type(row).__name__}: give tensors, as encode returns them")
        if row.dim() != 1 or not len(row) or row.dtype not in (torch.int64, torch.int32):
            raise UserError(f"{where} has shape {tuple(row.shape)} and {row.dtype}: give whole numbers, (n,), n > 0")
        if row.min() < 0 or row.max() >= types:
            raise UserError(f"{where}: the numbers of types must be from 0 to {types - 1}")
    return tokens


def load(
    checkpoint: Source | Sequence[Source],
    data: Source | None = None,
    *,
    bpe_codes: Source | None = None,
    sentencepiece_model: Source | None = None,
    tokenizer: str | None = None,
    detokenize: bool = False,
    attention: bool = False,
    bf16: bool = False,
    skip_dictionary_check: bool = False,
    **settings: Unpack[Settings],
) -> Translator:
    """Load a model for translation, or an ensemble of models with the same dictionaries.

        load(["seed1/checkpoint_best.pt", "seed2/checkpoint_best.pt"]).translate(["Ein Satz."], beam=6)

    If the data folder contains `text.yaml` (:mod:`~lwc_fairseq.preparation`), the model takes raw text.

    Args:
        checkpoint: the checkpoint file, or a pack (:mod:`~lwc_fairseq.packs`), or the address of one; several are an
            ensemble.
        data: the folder that fairseq-preprocess wrote; by default that of the pack, or of the training.
        bpe_codes: the codes of subword-nmt, instead of `text.yaml`. Sentences must then be tokenized as the data is.
            Without codes and without `text.yaml`, sentences must also be split into sub-words. Translations then
            consist of sub-words, too.
        sentencepiece_model: the model of sentencepiece, instead of `bpe_codes`.
        tokenizer: the name of a fairseq tokenizer, such as "moses", instead of `text.yaml`. It always detokenizes.
        detokenize: return translations as raw text, as `text.yaml` says.
        attention: fill "attention" and "alignment" of the hypotheses that `generate` returns; slower.
        bf16: compute in bfloat16. Some processors are faster with it. A warning tells if this one is slower.
        skip_dictionary_check: do not compare the words of the data's dictionaries with those of the training.
        settings: options that override those in the checkpoint, such as gnmt_length_penalty=True: those of
            :class:`Settings`, and all others of the task and the model.

    Returns:
        fairseq's interface: `translate`, `generate` (scores, attention), `encode` and `decode`. It is a torch module,
        so `.cuda()` and `.half()` work. It can be copied, pickled, and used from several threads, one at a time.

    Raises:
        UserError: a file does not exist, an argument is invalid or unknown, or `text.yaml` is of the opposite
            direction.
    """
    files = {"data": data, "bpe_codes": bpe_codes, "sentencepiece_model": sentencepiece_model}
    others = {"tokenizer": tokenizer, "detokenize": detokenize, "attention": attention}
    others |= {"bf16": bf16, "skip_dictionary_check": skip_dictionary_check}
    sources = check_arguments(checkpoint, files, {**others, **settings})
    packs = {source: unpack(source) for source in sources if is_pack(source)}
    paths = [packs[source] / MODEL if source in packs else Path(source) for source in sources]
    folder = Path(data or packs.get(sources[0]) or data_of_training(paths[0]))
    overrides = {"eval_bleu": False} | settings | ({"tokenizer": tokenizer} if tokenizer else {})
    overrides |= {"print_alignment": "hard"} if attention else {}
    for path in (*paths, folder):
        if os.pathsep in str(path.resolve()):
            raise UserError(f"{path.resolve()}: fairseq cannot read a path with {os.pathsep!r}: rename it")
    names = os.pathsep.join(str(path.resolve()) for path in paths)
    try:
        with skipped_check(skip_dictionary_check or IS_SKIPPED.get()):
            loaded = from_pretrained(str(paths[0].resolve().parent), names, str(folder.resolve()), **overrides)
    except ValidationError as error:
        raise UserError(f"load: {error.key}: {error.msg}") from error
    check_settings(settings, loaded["args"])
    model = Translator(loaded["args"], loaded["task"], loaded["models"])
    preparation = None if bpe_codes or sentencepiece_model or tokenizer else read_preparation(folder)
    if preparation:
        task = loaded["task"].cfg  # with languages that a training without -s and -t took from the names of its files
        check_direction(folder, preparation, task.source_lang, task.target_lang)
        model.tokenizer = Words(preparation, detokenize)
        model.bpe = make_subwords(preparation.bpe, preparation.codes)
    elif bpe_codes:
        model.bpe = make_subwords("subword_nmt", str(bpe_codes))
    elif sentencepiece_model:
        model.bpe = make_subwords("sentencepiece", str(sentencepiece_model))
    if detokenize and not (preparation or tokenizer):
        raise UserError(
            f"{folder}: no text.yaml says how its text was made, so translations cannot be detokenized: write one "
            "(docs/decoding.md), or leave detokenize out"
        )
    if bf16:
        model.bfloat16()
        if not torch.cuda.is_available():
            log_if_slower("bf16")
    return model


def check_arguments(checkpoint: Source | Sequence[Source], files: dict, others: dict) -> Sequence[Source]:
    """Return the sequence of checkpoints.

    Raises:
        UserError: an argument of :func:`load` has a wrong type, or names a file or tokenizer that does not exist.
    """
    paths = [checkpoint] if isinstance(checkpoint, Source) else checkpoint
    if not isinstance(paths, Sequence) or not all(isinstance(path, Source) for path in paths):
        raise UserError(f"load: checkpoint {checkpoint!r}: give the path of a file, or a list of paths")
    if not paths:
        raise UserError("load: checkpoint: the list is empty: give at least one file")
    kinds = {**get_type_hints(load), **get_type_hints(Settings), **get_type_hints(SearchOptions)}
    for name, value in {**files, **others}.items():
        if name in kinds:
            check_type(name, value, kinds[name], "load")
        if name in ("batch_size", "max_tokens") and value is not None and value < 1:
            raise UserError(f"load: {name} {value}: must be at least 1")
    for name, path in [*(("checkpoint", path) for path in paths), *files.items()]:
        if path and not Path(path).exists() and not (name == "checkpoint" and is_address(path)):
            raise UserError(f"{name} {path}: no such file or folder")
        if path and name != "checkpoint" and Path(path).is_dir() != (name == "data"):
            raise UserError(f"{name} {path}: give a {'folder' if name == 'data' else 'file'}")
    tokenizer = others["tokenizer"]
    if others["detokenize"] and not tokenizer and (files["bpe_codes"] or files["sentencepiece_model"]):
        raise UserError(
            "detokenize follows text.yaml, which bpe_codes or sentencepiece_model replaces: leave one of the two out"
        )
    if tokenizer and tokenizer not in TOKENIZER_REGISTRY:
        raise UserError(f"load: tokenizer {tokenizer}: choose {', '.join(TOKENIZER_REGISTRY)}")
    return paths


def check_settings(settings: Mapping[str, object], cfg: DictConfig) -> None:
    """Raises UserError if a setting has no effect: the checkpoint tells the order of its targets, `translate` sets the
    beam and returns the best translation, and fairseq ignores unknown settings and those of training."""
    if "reverse_target" in settings:
        raise UserError("load: reverse_target: the checkpoint says how it was trained: leave it out")
    if "beam" in settings:
        raise UserError(f"load: beam: give it to translate, as in model.translate(lines, beam={settings['beam']})")
    if "nbest" in settings:
        raise UserError("load: nbest: `translate` returns the best translation, `generate` all of a beam: leave it out")
    training = ("optimization", "optimizer", "lr_scheduler", "checkpoint", "criterion", "distributed_training", "ema")
    parts = [part for name, part in cfg.items() if isinstance(part, DictConfig) and name not in training]
    unknown = [name for name in settings if not any(name in part for part in parts)]
    if unknown:
        raise UserError(f"load: {', '.join(unknown)}: no option of the task, the model or the search")


def data_of_training(checkpoint: Path) -> Path:
    """Return the folder of binary data that a model was trained on. Raises UserError if it does not exist."""
    data = load_checkpoint_to_cpu(str(checkpoint))["cfg"]["task"]["data"].split(os.pathsep)[0]
    if not Path(data).is_dir():
        raise UserError(
            f"{checkpoint}: trained on {data}, which does not exist here: name the folder of its data (--data)"
        )
    return Path(data)
