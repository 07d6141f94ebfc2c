"""Reverse translations beside binary data: the files that `lwc-fairseq reverse` writes and the task reads.

For a set such as `train`, whose source is `de` and whose target is `en`, the folder of the data gets these files:

    reverse/train.de-en.json    what the translations are made of
    reverse/train.de-en.part    the translations made so far, in any order; removed at the end
    reverse/train.de-en.bin     all translations, as fairseq's binary data
    reverse/train.de-en.idx     their index, which is written last

A translation has its words from right to left, and the end symbol last. The files have a folder of their own, because
fairseq takes the languages of the data from the first name in the folder that has a pair of languages.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from fairseq.data import ConcatDataset, Dictionary, FairseqDataset
from fairseq.data.indexed_dataset import (
    MMapIndexedDataset,
    MMapIndexedDatasetBuilder,
    best_fitting_int_dtype,
    dataset_exists,
    infer_dataset_impl,
    make_dataset,
)
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.files import remove, whole_file

from ..files import checksum, make_folder, write_whole

HEAD = 2
"""In the unfinished file, a translation is a row of 32-bit integers: the number of its sentence, the number of its
tokens, and these tokens."""


@dataclass(frozen=True)
class Origin:
    """What the translations of a set are made of. The path of the checkpoint does not count, its content does."""

    checkpoint: str = field(compare=False)
    content: str  # a checksum of the checkpoint
    beam: int
    sentences: int
    sources: list[str]  # checksums of the files of the sources
    words: str  # a checksum of both dictionaries


def describe(path: str, dictionaries: tuple[Dictionary, Dictionary], impl: str | None = None) -> dict:
    """Return the parts of an :class:`Origin` that depend on the data: the sources at a path that :func:`source_path`
    returned, and the dictionaries of source and target."""
    words = json.dumps([dictionary.symbols for dictionary in dictionaries]).encode()
    return {
        "sentences": len(open_sources(path, dictionaries[0], impl)),
        "sources": [checksum(Path(f"{path}.{kind}")) for kind in ("idx", "bin")],
        "words": hashlib.sha256(words).hexdigest(),
    }


class ReverseFiles:
    """The files of the reverse translations of a set.

    Args:
        data: the folder of the binary data.
        split: the name of the set.
        languages: source and target.
    """

    def __init__(self, data: str | Path, split: str, languages: tuple[str, str]):
        self.data, self.split = data, split
        self.folder = Path(data) / "reverse"
        self.prefix = self.folder / f"{split}.{'-'.join(languages)}"
        self.record, self.part, self.tokens, self.index = (
            self.prefix.with_name(f"{self.prefix.name}.{kind}") for kind in ("json", "part", "bin", "idx")
        )

    def origin(self) -> Origin | None:
        """Return what the translations are made of, or None if none have been begun.

        Raises:
            UserError: the record cannot be read.
        """
        if not self.record.exists():
            return None
        try:
            return Origin(**json.loads(self.record.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{self.record}: not as lwc-fairseq reverse wrote it: remove {self.folder}") from error

    def check_origin(self, origin: Origin) -> None:
        """Raises UserError if there are translations, finished or not, of another origin."""
        existing = self.origin()
        if existing in (None, origin):
            return
        if existing.content != origin.content:
            difference = f"by another checkpoint ({existing.checkpoint})"
        elif existing.beam != origin.beam:
            difference = f"with --beam {existing.beam}"
        else:
            difference = "of other data"
        raise UserError(
            f"{self.prefix}: these translations were made {difference}: add --fresh to replace them, or give another "
            "--data"
        )

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """Open the unfinished file for this process alone.

        Raises:
            UserError: another process has it, or a file cannot be written.
        """
        make_folder(self.folder, "--data")
        try:
            file = self.part.open("a+b")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"{self.part}: another process is writing it: wait until it ends") from error
        except OSError as error:
            raise UserError(f"{self.part}: {error.strerror}") from error
        try:
            yield file
        finally:
            with suppress(OSError):  # what did not fit on the disk does not fit now, and `Unfinished.add` has said so
                file.close()

    def remove(self) -> None:
        """Remove the translations. The index goes first, so that no reader takes the rest for whole. Raises UserError
        if another process writes them."""
        with self._locked():
            for path in (self.index, self.tokens, self.part, self.record):
                remove(path)

    @contextmanager
    def writing(self, origin: Origin, types: int) -> Iterator["Unfinished"]:
        """Begin translations, or go on with those that an interrupted command has begun. At the end, if no error
        occurs, the unfinished file becomes the final ones. `types` is the size of the target dictionary.

        Raises:
            UserError: another process writes these translations, or a file cannot be written.
        """
        with self._locked() as file:
            if not self.record.exists():  # nothing says what these translations were made of
                for path in (self.index, self.tokens):
                    remove(path)
                file.truncate(0)
            write_whole(self.record, json.dumps(asdict(origin), indent=1) + "\n")
            unfinished = Unfinished(file, origin.sentences)
            yield unfinished
            try:
                self._finish(unfinished, types)
            except OSError as error:
                raise UserError(f"{self.prefix}: {error.strerror}") from error

    def _finish(self, unfinished: "Unfinished", types: int) -> None:
        values, starts = unfinished.read()
        with whole_file(self.index) as index, whole_file(self.tokens) as tokens:  # the index last
            builder = MMapIndexedDatasetBuilder(tokens, dtype=best_fitting_int_dtype(types))
            for start in starts + HEAD:
                builder.add_item(torch.from_numpy(values[start : start + values[start - 1]].copy()))
            builder.finalize(index)
        self.part.unlink()

    @property
    def missing(self) -> list[Path]:
        """The files of finished translations that are not there."""
        return [path for path in (self.index, self.tokens, self.record) if not path.exists()]

    def require(self, option: str) -> None:
        """Raises UserError if there are no finished translations, which `option` needs."""
        if missing := self.missing:
            raise UserError(
                f"{option}: {missing[0]} is missing: make it by `lwc-fairseq reverse CHECKPOINT --data {self.data}`, "
                "with the checkpoint of a trained right-to-left model"
            )

    def load(
        self, path: str, dictionaries: tuple[Dictionary, Dictionary], option: str, impl: str | None
    ) -> MMapIndexedDataset:
        """Return the translations of the sources at `path`, in their order.

        Raises:
            UserError: there are none, or they belong to other sources or other dictionaries.
        """
        self.require(option)
        origin, now = self.origin(), describe(path, dictionaries, impl)
        assert origin is not None, "required above"
        made = asdict(origin)
        if any(made[name] != value for name, value in now.items()):
            what = "the words of the dictionaries" if made["sources"] == now["sources"] else "the sources"
            raise UserError(
                f"{option}: {what} of {self.split} have changed since {self.index} was made: make it again by "
                f"`lwc-fairseq reverse CHECKPOINT --data {self.data} --fresh`"
            )
        return MMapIndexedDataset(str(self.prefix))


class Unfinished:
    """The file of the translations made so far. What a killed process has not written to the end is dropped.

    Args:
        file: open for reading and appending.
        sentences: the number of translations that there will be.
    """

    def __init__(self, file: BinaryIO, sentences: int):
        self.file, self.sentences = file, sentences
        _, starts = self.read()
        self.missing = np.flatnonzero(starts < 0)  # the numbers of sentences without a translation

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the content of the file, and where in it each sentence's row starts: -1 if there is none."""
        self.file.seek(0)
        values = np.frombuffer(self.file.read(), dtype=np.uint8)
        values = values[: len(values) // 4 * 4].view(np.int32)
        starts = np.full(self.sentences, -1)
        place = 0
        while place + HEAD < len(values):
            number, length = values[place : place + HEAD].tolist()  # NumPy's 32 bits would overflow in `place`
            if length < 1 or place + HEAD + length > len(values) or not 0 <= number < self.sentences:
                break
            starts[number] = place
            place += HEAD + length
        self.file.truncate(4 * place)
        return values[:place], starts

    def add(self, translations: Iterable[tuple[int, Tensor]]) -> None:
        """Append translations (m,), each with the number of its sentence.

        Raises:
            UserError: they cannot be written.
        """
        rows = [np.array([number, len(tokens), *tokens.tolist()], dtype=np.int32) for number, tokens in translations]
        try:
            self.file.write(np.concatenate(rows).tobytes())
            self.file.flush()
        except OSError as error:
            raise UserError(f"{self.file.name}: {error.strerror}") from error


def source_path(data: str | Path, split: str, languages: tuple[str, str], impl: str | None = None) -> str | None:
    """Return the path of the sources of a set without the ends of its files, or None if there is no such set. The
    data may have been prepared in the opposite direction."""
    source, target = languages
    paths = [f"{data}/{split}.{pair}.{source}" for pair in (f"{source}-{target}", f"{target}-{source}")]
    return next((path for path in paths if dataset_exists(path, impl=impl)), None)


def open_sources(path: str, dictionary: Dictionary, impl: str | None = None):
    """Open the sources at a path that :func:`source_path` returned."""
    return make_dataset(path, impl or infer_dataset_impl(path), fix_lua_indexing=True, dictionary=dictionary)


def load_reverse_tokens(
    data: str,
    split: str,
    languages: tuple[str, str],
    dictionaries: tuple[Dictionary, Dictionary],
    option: str,
    combine: bool,
    upsample_primary: int,
    impl: str | None,
) -> FairseqDataset | MMapIndexedDataset:
    """Load the reverse translations of a set, in the order in which fairseq loads its pairs.

    Args:
        data: one folder of binary data.
        languages, dictionaries: source and target.
        option: the option that needs the translations, for messages.
        combine: whether the sets train1, train2, … belong to `train`.
        upsample_primary: how often `train` itself is repeated if there are further sets.
        impl: the format of the data.

    Raises:
        UserError: translations are missing, or were made of other data.
    """
    parts = []
    for number in count():
        name = f"{split}{number or ''}"
        path = source_path(data, name, languages, impl)
        if path is None:
            break
        parts.append(ReverseFiles(data, name, languages).load(path, dictionaries, option, impl))
        if not combine:
            break
    if len(parts) == 1:
        return parts[0]
    return ConcatDataset(parts, [max(1, upsample_primary), *[1] * (len(parts) - 1)])
