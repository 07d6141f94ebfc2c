"""Loading trained models in Python: `load(checkpoint).translate(["…"])`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack, get_type_hints

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.hub_utils import from_pretrained
from omegaconf import DictConfig
from omegaconf.errors import ValidationError

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.dictionaries import IS_SKIPPED, skipped_check
from lwc_fairseq_compat.search_options import check_type

from .preparation import Preparation, Words, make_subwords, read_preparation
from .translator import Translator

Source = str | os.PathLike


class Settings(TypedDict, total=False):
    """Options of the task and of batches that override those in the checkpoint."""

    source_lang: str
    """The language of the sources, as in the names of the data's files."""
    target_lang: str
    """The language of the translations."""
    gnmt_length_penalty: bool
    """Divide a hypothesis' score by ((5 + length) / 6)^lenpen instead of length^lenpen."""
    agreement_path: str
    """Checkpoints of right-to-left models, separated by colons: rank by the sum of both directions' scores."""
    stock_search: bool
    """Use fairseq's own beam search, which finds the same hypotheses but is slower."""
    batch_size: int | None
    """The most sentences of a batch; None for no limit."""
    max_tokens: int | None
    """The most tokens of a batch; None for no limit."""


def load(
    checkpoint: Source | Sequence[Source],
    data: Source | None = None,
    *,
    bpe_codes: Source | None = None,
    sentencepiece_model: Source | None = None,
    tokenizer: str | None = None,
    detokenize: bool = False,
    attention: bool = False,
    skip_dictionary_check: bool = False,
    **settings: Unpack[Settings],
) -> Translator:
    """Load a model for translation, or an ensemble of models with the same dictionaries.

        load(["seed1/checkpoint_best.pt", "seed2/checkpoint_best.pt"]).translate(["Ein Satz."], beam=6)

    If the data folder contains `text.yaml` (:mod:`~lwc_fairseq.preparation`), the model takes raw text.

    Args:
        checkpoint: the checkpoint file or, for an ensemble, several files.
        data: the folder that fairseq-preprocess wrote; by default that of the training.
        bpe_codes: the codes of subword-nmt, instead of `text.yaml`. Sentences are then tokenized as the data; without
            both, they also consist of sub-words, as do their translations.
        sentencepiece_model: the model of sentencepiece, instead of `bpe_codes`.
        tokenizer: the name of a fairseq tokenizer, such as "moses", instead of `text.yaml`. It always detokenizes.
        detokenize: return translations as raw text, as `text.yaml` says.
        attention: fill "attention" and "alignment" of the hypotheses that `generate` returns; slower.
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
    paths = checkpoint_paths(checkpoint)
    files = {"data": data, "bpe_codes": bpe_codes, "sentencepiece_model": sentencepiece_model}
    others = {"tokenizer": tokenizer, "detokenize": detokenize, "attention": attention, **settings}
    others["skip_dictionary_check"] = skip_dictionary_check
    kinds = {**get_type_hints(load), **get_type_hints(Settings)}
    for name, value in {**files, **others}.items():
        if name in kinds:
            check_type(name, value, kinds[name], "load")
    check_files([*(("checkpoint", path) for path in paths), *files.items()])
    folder = Path(data) if data else data_of_training(paths[0])
    overrides = dict(settings)
    if tokenizer:
        if tokenizer not in TOKENIZER_REGISTRY:
            raise UserError(f"load: tokenizer {tokenizer}: choose {', '.join(TOKENIZER_REGISTRY)}")
        overrides["tokenizer"] = tokenizer
    if attention:
        overrides["print_alignment"] = "hard"
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
        check_direction(preparation, loaded["args"].task, folder)
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
    return model


def checkpoint_paths(checkpoint: Source | Sequence[Source]) -> list[Path]:
    """Return the paths of one checkpoint or of several.

    Raises:
        UserError: there is none, or it is no path.
    """
    paths = [checkpoint] if isinstance(checkpoint, Source) else checkpoint
    if not isinstance(paths, Sequence) or not all(isinstance(path, Source) for path in paths):
        raise UserError(f"load: checkpoint {checkpoint!r}: give the path of a file, or a list of paths")
    if not paths:
        raise UserError("load: checkpoint: the list is empty: give at least one file")
    return [Path(path) for path in paths]


def check_files(named: list[tuple[str, Source | None]]) -> None:
    """Raises UserError if a file or folder does not exist, or is the other of both."""
    for name, path in named:
        if path and not Path(path).exists():
            raise UserError(f"{name} {path}: no such file or folder")
        if path and name != "checkpoint" and Path(path).is_dir() != (name == "data"):
            raise UserError(f"{name} {path}: give a {'folder' if name == 'data' else 'file'}")


def check_direction(preparation: Preparation, task: DictConfig, folder: Path) -> None:
    """Raises UserError if `text.yaml` prepares the language that the model translates into."""
    if (preparation.target, preparation.source) == (task.source_lang, task.target_lang):
        raise UserError(
            f"{folder}: text.yaml is for {preparation.source} to {preparation.target}, but the model translates "
            f"{task.source_lang} to {task.target_lang}: name the codes of its sub-words (bpe_codes or --bpe-codes), "
            "and give text that is tokenized as the data"
        )


def check_settings(settings: dict[str, object], cfg: DictConfig) -> None:
    """Raises UserError if a setting has no effect: the checkpoint tells the order of its targets, `translate` sets the
    beam, and fairseq ignores unknown settings."""
    if "reverse_target" in settings:
        raise UserError("load: reverse_target: the checkpoint says how it was trained: leave it out")
    if "beam" in settings:
        raise UserError(f"load: beam: give it to translate, as in model.translate(lines, beam={settings['beam']})")
    parts = [part for part in cfg.values() if isinstance(part, DictConfig)]
    unknown = [name for name in settings if not any(name in part for part in parts)]
    if unknown:
        raise UserError(f"load: {', '.join(unknown)}: neither the task nor the model has an option of this name")


def data_of_training(checkpoint: Path) -> Path:
    """Return the folder of binary data that a model was trained on.

    Raises:
        UserError: there is no such folder.
    """
    data = load_checkpoint_to_cpu(str(checkpoint))["cfg"]["task"]["data"].split(os.pathsep)[0]
    if not Path(data).is_dir():
        raise UserError(
            f"{checkpoint}: trained on {data}, which does not exist here: name the folder of its data (--data)"
        )
    return Path(data)
