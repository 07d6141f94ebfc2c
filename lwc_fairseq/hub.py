"""Loading trained models in Python: `load(checkpoint).translate(["…"])`."""

import os
from collections.abc import Sequence
from pathlib import Path

from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.hub_utils import GeneratorHubInterface, from_pretrained
from omegaconf import DictConfig
from torch import Tensor

from lwc_fairseq_compat import UserError

from .preparation import Preparation, Words, make_subwords, read_preparation
from .truncation import truncate_source

Source = str | os.PathLike


def load(
    checkpoint: Source | Sequence[Source],
    data: Source | None = None,
    *,
    bpe_codes: Source | None = None,
    sentencepiece_model: Source | None = None,
    tokenizer: str | None = None,
    detokenize: bool = False,
    attention: bool = False,
    **settings,
) -> GeneratorHubInterface:
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
        settings: options of the task or the model that override those in the checkpoint, such as
            gnmt_length_penalty=True.

    Returns:
        fairseq's interface: `translate`, `generate` (scores, attention), `encode` and `decode`. It is a torch module,
        so `.cuda()` and `.half()` work.

    Raises:
        UserError: a file does not exist, a setting is unknown, or `text.yaml` is of the opposite direction.
    """
    paths = [Path(one) for one in ([checkpoint] if isinstance(checkpoint, Source) else checkpoint)]
    files = {"data": data, "bpe_codes": bpe_codes, "sentencepiece_model": sentencepiece_model}
    check_files([*(("checkpoint", path) for path in paths), *files.items()])
    folder = Path(data) if data else data_of_training(paths[0])
    overrides = dict(settings)
    if tokenizer:
        overrides["tokenizer"] = tokenizer
    if attention:
        overrides["print_alignment"] = "hard"
    names = os.pathsep.join(str(path.resolve()) for path in paths)
    loaded = from_pretrained(str(paths[0].resolve().parent), names, str(folder.resolve()), **overrides)
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


class Translator(GeneratorHubInterface):
    """fairseq's interface. It truncates a source that is too long for the models, and keeps its end symbol."""

    def binarize(self, sentence: str) -> Tensor:
        tokens = super().binarize(sentence)
        longest, _ = self.max_positions
        return truncate_source(tokens, longest)


def check_files(named: list[tuple[str, Source | None]]) -> None:
    """Raises UserError if a file or folder does not exist."""
    for name, path in named:
        if path and not Path(path).exists():
            raise UserError(f"{name} {path}: no such file or folder")


def check_direction(preparation: Preparation, task: DictConfig, folder: Path) -> None:
    """Raises UserError if `text.yaml` prepares the language that the model translates into."""
    if (preparation.target, preparation.source) == (task.source_lang, task.target_lang):
        raise UserError(
            f"{folder}: text.yaml is for {preparation.source} to {preparation.target}, but the model translates "
            f"{task.source_lang} to {task.target_lang}: name the codes of its sub-words (bpe_codes or --bpe-codes), "
            "and give text that is tokenized as the data"
        )


def check_settings(settings: dict[str, object], cfg: DictConfig) -> None:
    """Raises UserError if a setting has no effect: `translate` sets the beam, and fairseq ignores unknown settings."""
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
