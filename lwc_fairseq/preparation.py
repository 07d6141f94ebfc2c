"""How raw text becomes the tokens of a data set, and how translations become raw text again.

The recipes write `text.yaml` beside the binary data:

    source: de                # the languages, for the rules of Moses
    target: en
    normalize: true           # punctuation, by Moses' rules
    tokenize: true            # by Moses' rules
    tokenize_target: true     # only if source and target differ
    split_hyphens: false      # whether the tokenizer splits words at hyphens
    case: lower               # or keep, or truecase: the first word of a sentence gets its usual case
    case_model: model.de      # of the truecaser
    bpe: subword_nmt          # or sentencepiece
    codes: codes              # the codes of subword-nmt, or the model of sentencepiece

Only the languages are always needed. `case: truecase` needs `case_model`, and `bpe` needs `codes`. Files are beside
`text.yaml`.
"""

import shutil
from argparse import Namespace
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from lwc_fairseq_compat import UserError

from .files import write_whole
from .typed_yaml import Unquoted, as_settings, read_yaml

FILE = "text.yaml"
CASES = ("keep", "lower", "truecase")
OPTIONS = {"subword_nmt": "bpe_codes", "sentencepiece": "sentencepiece_model"}
"""The option of each of fairseq's sub-word encoders that names its file."""


@dataclass(frozen=True)
class Preparation:
    """The content of `text.yaml`, with whole paths of files."""

    source: str
    target: str
    normalize: bool = False
    tokenize: bool = False
    tokenize_target: bool | None = None
    split_hyphens: bool = False
    case: str = "keep"
    case_model: str | None = None
    bpe: str | None = None
    codes: str | None = None

    @property
    def tokenizes_target(self) -> bool:
        return self.tokenize if self.tokenize_target is None else self.tokenize_target


def make_subwords(bpe: str | None, codes: str | None):
    """Return fairseq's sub-word encoder `bpe`, which reads the file `codes`. Return None if `bpe` is None.

    Raises:
        UserError: the file is invalid, or the package `sentencepiece` is needed, but not installed.
    """
    if bpe is None:
        return None
    from fairseq.data import encoders  # not above: reading and writing text.yaml needs neither fairseq nor PyTorch

    try:
        return encoders.build_bpe(Namespace(bpe=bpe, bpe_separator="@@", **{OPTIONS[bpe]: codes}))
    except ImportError as error:
        raise UserError(f"{codes} needs sentencepiece: pip install sentencepiece") from error
    except RuntimeError as error:  # of sentencepiece
        raise UserError(f"{codes}: not a model of {bpe}") from error


def read_preparation(data: Path) -> Preparation | None:
    """Read `text.yaml` in a folder of binary data, or return None. Raises UserError if it is invalid."""
    path = data / FILE
    if not path.exists():
        return None
    preparation = as_settings(str(path), Preparation, read_yaml(path))
    return replace(preparation, **check(path, preparation))


def check_direction(data: Path, preparation: Preparation, source: str, target: str) -> None:
    """Raises UserError if a model translates from `source` to `target`, and `text.yaml` is for the opposite."""
    if (preparation.target, preparation.source) == (source, target):
        raise UserError(
            f"{data}: {FILE} is for {preparation.source} to {preparation.target}, but the model translates {source} to "
            f"{target}: name the codes of its sub-words (bpe_codes or --bpe-codes), and give text that is tokenized as "
            "the data"
        )


def write_preparation(data: Path, settings: dict[str, str]) -> None:
    """Write `text.yaml` into a folder of binary data. The folder must already have the files that the settings name.
    Raises UserError if a setting is invalid.

    Args:
        settings: the values of the keys, as YAML has them: `{"source": "no", "tokenize": "true"}`.
    """
    path = data / FILE
    preparation = as_settings(str(path), Preparation, {key: Unquoted(value) for key, value in settings.items()})
    check(path, preparation)
    content = {key: value for key, value in asdict(preparation).items() if key in settings}
    write_whole(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def check(path: Path, preparation: Preparation) -> dict[str, Any]:
    """Return the whole paths of the files that `text.yaml` names, by key. Raises UserError if a value is not one of its
    choices, or a file does not exist or is in another folder."""
    if preparation.case not in CASES:
        raise UserError(f"{path}: case {preparation.case}: choose {', '.join(CASES)}")
    if preparation.bpe not in (None, *OPTIONS):
        raise UserError(f"{path}: bpe {preparation.bpe}: choose {', '.join(OPTIONS)}")
    files = {}
    for key, is_needed in (("case_model", preparation.case == "truecase"), ("codes", preparation.bpe is not None)):
        if name := getattr(preparation, key):
            if Path(name).name != name or name == "..":  # a pack would copy files of this machine
                raise UserError(f"{path}: {key}: {name}: name a file beside {FILE}, without a folder")
            files[key] = str(path.parent / name)
        if is_needed and not (key in files and Path(files[key]).is_file()):
            raise UserError(f"{path}: {key}: {files.get(key, 'missing')}: no such file")
    return files


class Words:
    """Converts raw lines to words, and words to raw lines. It has the interface of fairseq's tokenizers.

    Args:
        detokenize: whether `decode` undoes tokenization and truecasing. Lower case remains.
    """

    def __init__(self, preparation: Preparation, detokenize: bool):
        from sacremoses import MosesDetokenizer, MosesDetruecaser, MosesPunctNormalizer, MosesTokenizer, MosesTruecaser

        self.preparation, self.detokenize = preparation, detokenize
        self.normalizer = MosesPunctNormalizer(preparation.source)
        self.tokenizer, self.detokenizer = MosesTokenizer(preparation.source), MosesDetokenizer(preparation.target)
        try:
            self.truecaser = MosesTruecaser(preparation.case_model) if preparation.case == "truecase" else None
        except ValueError as error:  # also of a text that is not UTF-8
            raise UserError(f"{preparation.case_model}: not a model of sacremoses' truecaser: {error}") from error
        self.detruecaser = MosesDetruecaser()

    def encode(self, line: str) -> str:
        """Return the words of a raw line, separated by spaces."""
        if self.preparation.normalize:
            line = self.normalizer.normalize(line)
        if self.preparation.tokenize:
            line = self.tokenizer.tokenize(line, self.preparation.split_hyphens, return_str=True)
        if self.truecaser:
            line = self.truecaser.truecase(line, return_str=True)
        return line.lower() if self.preparation.case == "lower" else line

    def decode(self, text: str) -> str:
        """Convert a translation, whose words are separated by spaces, to raw text. Without `detokenize`, return it."""
        if not self.detokenize:
            return text
        if self.truecaser:
            text = self.detruecaser.detruecase(text, return_str=True)
        return self.detokenizer.detokenize(text.split()) if self.preparation.tokenizes_target else text


def copy_preparation(preparation: Preparation | None, folder: Path) -> dict[str, Any]:
    """Copy the files that a preparation names to a folder, and return its settings with the names of the copies."""
    settings = {} if preparation is None else asdict(preparation)
    settings = {key: value for key, value in settings.items() if value is not None}
    for key in {"codes", "case_model"} & set(settings):
        shutil.copy(settings[key], folder / key)
        settings[key] = key
    return settings


def target_words(preparation: Preparation) -> Words:
    """Return what makes words of a translation, as in the data. The truecaser is that of the source, so a translation
    keeps its case if there is one."""
    case = "keep" if preparation.case == "truecase" else preparation.case
    return Words(
        replace(preparation, source=preparation.target, tokenize=preparation.tokenizes_target, case=case), False
    )
