"""Dictionaries: patches that name the line that cannot be read, write what can be read again, and compare the words of
the data with those of a training.

A model knows words by their numbers. With the words of a dictionary in another order, it translates into other words,
without an error. So a checkpoint holds the words of each dictionary of its task, in their order.
"""

import contextlib
import contextvars
import dataclasses
import io
import os
import sys
from itertools import zip_longest

from .data import TRANSLATION_MODELS
from .errors import UserError
from .hooks import mends, replaces
from .text import read_utf8

FLAG = " #fairseq:overwrite"
"""At the end of a line, this says that an earlier line has the same word, which now gets the number of this line."""

SPECIAL_SYMBOLS = 4
"""<s>, <pad>, </s> and <unk>, which the file of a dictionary does not have."""


@replaces("fairseq.data.dictionary", "Dictionary.add_from_file")
def name_line_of_dictionary(add_from_file, self, f):
    """Say which dictionary is missing, or in which line it is wrong, and ignore a byte-order mark.

    Why: fairseq fails with a traceback that names neither. The mark becomes a part of the first word. Needed: always.
    """
    from fairseq.file_io import PathManager

    if not isinstance(f, str):
        return add_from_file(self, f)
    self.file = f  # for messages
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


@replaces("fairseq.data.dictionary", "Dictionary._save")
def keep_flags(save, self, f, kv_iterator):
    """Write the flag to the line of a word that was there before.

    Why: fairseq reads the flag but loses it, and cannot read what it has written. Needed: always.
    """
    if isinstance(f, str):  # fairseq opens it, and comes back here
        return save(self, f, kv_iterator)
    before = set(self.symbols[: self.nspecial])

    def rows():
        for word, count in kv_iterator:
            yield word, f"{count}{FLAG}" if word in before else count
            before.add(word)

    save(self, f, rows())


IS_SKIPPED = contextvars.ContextVar("whether the comparison of dictionaries is skipped", default=False)


@contextlib.contextmanager
def skipped_check(is_skipped=True):
    """Skip the comparison of dictionaries inside of a `with` statement."""
    token = IS_SKIPPED.set(is_skipped)
    try:
        yield
    finally:
        IS_SKIPPED.reset(token)


@mends("fairseq.dataclass.configs", "CommonConfig")
def add_option(common):
    """Give all commands the option ``--skip-dictionary-check``. Needed: always."""
    text = "do not compare the words of dictionaries with those that a model was trained with"
    option = ("skip_dictionary_check", bool, dataclasses.field(default=False, metadata={"help": text}))
    options = dataclasses.make_dataclass("Options", [option])
    common.__dataclass_fields__.update(options.__dataclass_fields__)
    common.__annotations__.update(options.__annotations__)
    common.skip_dictionary_check = False
    return common


@replaces("fairseq.utils", "import_user_module")
def obey_option(import_user_module, common):
    """Obey ``--skip-dictionary-check``. Commands call ``import_user_module`` first, in each process. Needed: always."""
    IS_SKIPPED.set(getattr(common, "skip_dictionary_check", IS_SKIPPED.get()))
    import_user_module(common)


def dictionaries_of(task):
    """Return the dictionaries of a task by the names of its attributes, such as `src_dict`."""
    values = dict(vars(task))
    for name, value in vars(task).items():
        if isinstance(value, dict):  # but no configuration, whose values may not be there
            values |= {f"{name}.{key}": member for key, member in value.items()}
    return {name: value for name, value in values.items() if hasattr(value, "symbols")}


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.state_dict")
def save_words(state_dict, self):
    """Keep the words of the dictionaries in the checkpoint, unless the task keeps its dictionaries there under the same
    name, as HuBERT's does. Needed: always."""
    # A checkpoint holds equal texts once if they are one object.
    words = {name: sys.intern("\n".join(dictionary.symbols)) for name, dictionary in dictionaries_of(self).items()}
    return {**({"dictionaries": words} if words else {}), **state_dict(self)}


def words_in(task_state):
    """Return the words that :func:`save_words` has kept in the state of a task, by the names of dictionaries."""
    words = task_state.get("dictionaries")
    return words if isinstance(words, dict) and all(isinstance(text, str) for text in words.values()) else {}


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.load_state_dict")
def compare_words(load_state_dict, self, state_dict):
    """Refuse a model whose words are not those of the data.

    Why: fairseq translates into wrong words, without an error. Needed: always.
    """
    check_words(self, state_dict)
    if words_in(state_dict):
        state_dict = {name: value for name, value in state_dict.items() if name != "dictionaries"}
    load_state_dict(self, state_dict)


@replaces("fairseq.tasks", "setup_task")
def compare_shards(setup_task, cfg, *args, **kwargs):
    """Refuse data in several folders (``data1:data2``) whose dictionaries differ.

    Why: fairseq reads only the dictionaries of the first folder, and decodes the other folders with them too.
    Needed: always.
    """
    from fairseq.data import Dictionary

    task = setup_task(cfg, *args, **kwargs)
    folders = (getattr(cfg, "data", None) or "").split(os.pathsep)[1:]
    for file in {getattr(dictionary, "file", None) for dictionary in dictionaries_of(task).values()} - {None}:
        for other in (os.path.join(folder, os.path.basename(file)) for folder in folders):
            if os.path.exists(other):
                what = f"the words of {other} are not those of {file}"
                remedy = "make the data of all folders with the same dictionaries"
                compare(Dictionary.load(other).symbols, Dictionary.load(file).symbols, what, remedy)
    return task


class OtherWords(UserError):
    """A dictionary has other words than the training of a model, or than another dictionary."""


def check_words(task, state_dict):
    """Raises OtherWords if a task's dictionaries differ from those in a checkpoint's task state. It may have none."""
    trained = words_in(state_dict)
    for name, dictionary in dictionaries_of(task).items():
        if name in trained:
            file = getattr(dictionary, "file", None) or name
            what = f"the words of {file} are not those that the model was trained with"
            remedy = "give the data of its training, or make this data with its dictionaries"
            compare(dictionary.symbols, trained[name].split("\n"), what, remedy)


def check_same_words(path, state, other_path, other):
    """Raises OtherWords if two checkpoints, given by path and content, hold different words for one dictionary."""
    words, expected = (words_in(part.get("task_state", {})) for part in (state, other))
    for name in words.keys() & expected.keys():
        what = f"{path}: the words that it was trained with are not those of {other_path}"
        remedy = "take models that were trained with the same dictionaries"
        compare(words[name].split("\n"), expected[name].split("\n"), what, remedy)


def compare(words, expected, what, remedy):
    """Raises OtherWords, with the first word that differs, if two dictionaries differ and the check is not skipped.

    The special symbols come first in both.
    """
    if words == expected or IS_SKIPPED.get():
        return
    pairs = enumerate(zip_longest(words, expected), 1 - SPECIAL_SYMBOLS)
    number, words = next((number, words) for number, words in pairs if words[0] != words[1])
    word, other = ("missing" if value is None else f"'{value}'" for value in words)
    raise OtherWords(
        f"{what}: word {number} is {word}, not {other}. To mend it, {remedy} (fairseq-preprocess --srcdict and "
        "--tgtdict); --skip-dictionary-check skips this check"
    )
