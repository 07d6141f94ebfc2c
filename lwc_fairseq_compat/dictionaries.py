"""Dictionaries: patches that name the line that cannot be read, and write what can be read again."""

import functools
import io
import os

from .data import TRANSLATION_MODELS
from .errors import UserError
from .hooks import mends
from .text import read_utf8

FLAG = " #fairseq:overwrite"
"""At the end of a line, says that its word has been there before, and has the number of this line from now on."""


@mends("fairseq.data.dictionary", "Dictionary.add_from_file")
def name_line_of_dictionary(add_from_file):
    """Say which dictionary is missing, or in which line it is wrong, and ignore a byte-order mark.

    Why: fairseq fails with a traceback that names neither. The mark becomes a part of the first word. Needed: always.
    """
    from fairseq.file_io import PathManager

    @functools.wraps(add_from_file)
    def add_from_named_file(self, f):
        if not isinstance(f, str):
            return add_from_file(self, f)
        path = PathManager.get_local_path(f)
        check_exists(path)
        text = read_utf8(path)
        if not text:
            raise UserError(f"dictionary {f}: the file is empty")
        size = len(self.symbols)
        try:
            add_from_file(self, io.StringIO(text, newline="\n"))
        except (ValueError, RuntimeError) as error:
            number = len(self.symbols) - size  # of the lines before, each of which has added a word
            mistake = mistake_in(text.split("\n")[number], self)
            raise UserError(
                f"dictionary {f}, line {number + 1}: {mistake} (a line is a word, a space and a count)"
            ) from error

    return add_from_named_file


def check_exists(path):
    """Raises UserError, with the options that lead to a dictionary, if it does not exist."""
    if os.path.exists(path):
        return
    hint = (
        "Give the folder that fairseq-preprocess wrote (its --destdir) and the language pair that it was made for "
        "(-s, -t)"
    )
    if path.endswith("/dict.txt"):
        hint = (
            "It is part of the data of a language model. If the model is the one of --lm-path, copy the target "
            f"dictionary to this name; {TRANSLATION_MODELS}"
        )
    raise UserError(f"dictionary not found: {path}. {hint}")


def mistake_in(line, dictionary):
    """Return what is wrong with a line that `dictionary` cannot read."""
    entry = line.rstrip().removesuffix(FLAG)
    word, space, count = entry.rpartition(" ")
    if not entry:
        return "an empty line"
    if not space:
        return f"{entry!r}: a tab stands for the space" if "\t" in entry else f"{entry!r} has no count"
    if word not in dictionary:
        return f"{count!r}, the count of {word!r}, is not a whole number"
    if dictionary.index(word) < dictionary.nspecial:
        return f"{word!r} is a symbol that fairseq itself adds: remove the line"
    return f"{word!r} has been there before: remove a line, or add{FLAG} to this one, whose number the word then has"


@mends("fairseq.data.dictionary", "Dictionary._save")
def keep_flags(save):
    """Write the flag ``#fairseq:overwrite`` to the line of a word that was there before.

    Why: fairseq reads the flag but loses it, and cannot read what it has written. Needed: always.
    """

    @functools.wraps(save)
    def save_with_flags(self, f, kv_iterator):
        if isinstance(f, str):  # fairseq opens it, and comes back here
            return save(self, f, kv_iterator)
        before = set(self.symbols[: self.nspecial])

        def rows():
            for word, count in kv_iterator:
                yield word, f"{count}{FLAG}" if word in before else count
                before.add(word)

        save(self, f, rows())

    return save_with_flags
