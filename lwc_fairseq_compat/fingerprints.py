"""Dictionaries: patches that keep the words of a training in its checkpoints, and compare them with those of the data.

A model knows words by their numbers. With the words of a dictionary in another order, it translates into other words,
without an error. So a checkpoint holds the words of each dictionary of its task, in their order.
"""

import contextlib
import contextvars
import dataclasses
import functools
import os
from collections.abc import Mapping
from itertools import zip_longest

from .errors import UserError
from .hooks import mends

IS_SKIPPED = contextvars.ContextVar("whether the comparison of dictionaries is skipped", default=False)

SPECIAL_SYMBOLS = 4
"""<s>, <pad>, </s> and <unk>, which the file of a dictionary does not have."""


class OtherWords(UserError):
    """A dictionary has other words than the training of a model, or than another dictionary."""


@contextlib.contextmanager
def skipped_check(is_skipped=True):
    """Skip the comparison of dictionaries inside of a `with` statement."""
    token = IS_SKIPPED.set(is_skipped)
    try:
        yield
    finally:
        IS_SKIPPED.reset(token)


@dataclasses.dataclass
class Options:
    skip_dictionary_check: bool = dataclasses.field(
        default=False,
        metadata={"help": "do not compare the words of dictionaries with those that a model was trained with"},
    )


@mends("fairseq.dataclass.configs", "CommonConfig")
def add_option(common):
    """Give all commands the option ``--skip-dictionary-check``. Needed: always."""
    common.__dataclass_fields__.update(Options.__dataclass_fields__)
    common.__annotations__.update(Options.__annotations__)
    common.skip_dictionary_check = Options.skip_dictionary_check
    return common


@mends("fairseq.utils", "import_user_module")
def obey_option(import_user_module):
    """Obey ``--skip-dictionary-check``: this function is the first that each command calls in each of its processes.

    Needed: always.
    """

    @functools.wraps(import_user_module)
    def import_user_module_and_obey(common):
        IS_SKIPPED.set(getattr(common, "skip_dictionary_check", IS_SKIPPED.get()))
        import_user_module(common)

    return import_user_module_and_obey


@mends("fairseq.data.dictionary", "Dictionary.load")
def remember_file(load):
    """Let a dictionary know its file, so that messages can name it. Needed: always."""

    @functools.wraps(load)
    def load_with_name(cls, f, *args, **kwargs):
        dictionary = load.__func__(cls, f, *args, **kwargs)
        dictionary.file = f if isinstance(f, str) else None
        return dictionary

    return classmethod(load_with_name)


def dictionaries_of(task):
    """Return the dictionaries of a task by the names of its attributes, such as `src_dict`."""
    by_name = {}
    for name, value in vars(task).items():
        members = {f"{name}.{key}": member for key, member in value.items()} if isinstance(value, Mapping) else {}
        by_name |= {name: value for name, value in {name: value, **members}.items() if hasattr(value, "symbols")}
    return by_name


@mends("fairseq.tasks.fairseq_task", "FairseqTask.state_dict")
def save_words(state_dict):
    """Keep the words of the dictionaries in the checkpoint. Needed: always."""

    @functools.wraps(state_dict)
    def state_dict_with_words(self):
        words = {name: "\n".join(dictionary.symbols) for name, dictionary in dictionaries_of(self).items()}
        shared = {text: text for text in words.values()}  # a checkpoint holds equal words once if they are one object
        words = {name: shared[text] for name, text in words.items()}
        return {**state_dict(self), **({"dictionaries": words} if words else {})}

    return state_dict_with_words


@mends("fairseq.tasks.fairseq_task", "FairseqTask.load_state_dict")
def compare_words(load_state_dict):
    """Refuse a model whose words are not those of the data.

    Why: fairseq translates into wrong words, without an error. Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_state_dict_of_same_words(self, state_dict):
        check_words(self, state_dict)
        load_state_dict(self, {name: value for name, value in state_dict.items() if name != "dictionaries"})

    return load_state_dict_of_same_words


def check_words(task, state_dict):
    """Compare a task's dictionaries with the words in the task state of a checkpoint. Older checkpoints have no words.

    Raises:
        OtherWords: they differ.
    """
    trained = state_dict.get("dictionaries", {})
    for name, dictionary in dictionaries_of(task).items():
        if name in trained:
            file = getattr(dictionary, "file", None) or name
            what = f"the words of {file} are not those that the model was trained with"
            remedy = "give the data of its training, or make this data with its dictionaries"
            compare(dictionary.symbols, trained[name].split("\n"), what, remedy)


def check_same_words(path, state, other_path, other):
    """Compare the words of two checkpoints, if both have them.

    Args:
        path, other_path: the names of the checkpoints.
        state, other: what they hold.

    Raises:
        OtherWords: they differ.
    """
    words, expected = (part.get("task_state", {}).get("dictionaries", {}) for part in (state, other))
    for name in words.keys() & expected.keys():
        what = f"{path}: the words that it was trained with are not those of {other_path}"
        remedy = "take models that were trained with the same dictionaries"
        compare(words[name].split("\n"), expected[name].split("\n"), what, remedy)


def compare(words, expected, what, remedy):
    """Compare the words of two dictionaries, unless the check is skipped. The special symbols come first in both.

    Raises:
        OtherWords: they differ. The message has the first word that differs.
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


@mends("fairseq.tasks", "setup_task")
def compare_shards(setup_task):
    """Refuse data in several folders (``data1:data2``) whose dictionaries differ.

    Why: fairseq reads the dictionaries of the first folder, and takes the numbers in the others for its words.
    Needed: always.
    """

    from fairseq.data import Dictionary

    @functools.wraps(setup_task)
    def setup_task_of_same_words(cfg, *args, **kwargs):
        task = setup_task(cfg, *args, **kwargs)
        folders = (getattr(cfg, "data", None) or "").split(os.pathsep)[1:]
        for file in {getattr(dictionary, "file", None) for dictionary in dictionaries_of(task).values()} - {None}:
            for other in (os.path.join(folder, os.path.basename(file)) for folder in folders):
                if os.path.exists(other):
                    what = f"the words of {other} are not those of {file}"
                    remedy = "make the data of all folders with the same dictionaries"
                    compare(Dictionary.load(other).symbols, Dictionary.load(file).symbols, what, remedy)
        return task

    return setup_task_of_same_words
