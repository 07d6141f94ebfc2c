"""Options of the search: values that are impossible, and options that exclude each other or have no effect.

:func:`check_search` is the same for all doors: the commands, their flags in a table, ``--eval-bleu-args`` and Python.
"""

import argparse
import difflib
import functools
import logging
import os
import types
import typing
from dataclasses import fields
from enum import Enum
from math import inf

from .data import require_targets
from .errors import UserError
from .hooks import mends

logger = logging.getLogger(__name__)

RANGES = {
    "beam": (lambda beam: beam >= 1, "must be at least 1"),
    "nbest": (lambda nbest: nbest >= 1, "must be at least 1"),
    "max_len_a": (lambda factor: 0 <= factor < inf, "must be a number from 0"),
    "max_len_b": (lambda length: length >= 0, "must be at least 0"),
    "min_len": (lambda length: length >= 0, "must be at least 0"),
    "lenpen": (lambda power: -50 <= power <= 50, "must be a number from -50 to 50"),
    "unkpen": (lambda penalty: -1e6 <= penalty <= 1e6, "must be a number from -1000000 to 1000000"),
    "prefix_size": (lambda size: size >= 0, "must be at least 0"),
    "no_repeat_ngram_size": (lambda size: size >= 0, "must be at least 0"),
    "sampling_topk": (lambda number: number >= 1, "must be at least 1"),
    "sampling_topp": (lambda share: 0 < share <= 1, "must be above 0 and at most 1"),
    "temperature": (lambda temperature: 1e-4 <= temperature <= 1e4, "must be a number from 0.0001 to 10000"),
    "diverse_beam_groups": (lambda groups: groups >= 1, "must be at least 1"),
    "diverse_beam_strength": (lambda strength: abs(strength) <= 1e6, "must be a number from -1000000 to 1000000"),
    "diversity_rate": (lambda rate: 0 <= rate <= 1e6, "must be a number from 0 to 1000000"),
    "lm_weight": (lambda weight: abs(weight) <= 1000, "must be a number from -1000 to 1000"),
}
"""A test of each option's value, which NaN fails, and what it says. A default always passes: -1 means off."""

SEARCHES = ("sampling", "diverse_beam_groups", "match_source_len", "diversity_rate", "constraints")
"""Options that choose the kind of search. fairseq obeys one of them."""

OF_SEARCHES = (*SEARCHES, "prefix_size", "no_repeat_ngram_size", "lm_path", "replace_unk")
"""Options without effect where the reference is scored instead of a search."""

OF_REFERENCES = ("score_reference", "prefix_size", "sacrebleu")
"""Options that need the references of a test set."""

POST_PROCESSES = "subword_nmt, sentencepiece, wordpiece, letter, silence, _EOW, @@, none"
WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a string", type(None): "None"}


@functools.cache
def option_fields():
    """Return the fields of fairseq's generation options by name."""
    from fairseq.dataclass.configs import GenerationConfig

    return {field.name: field for field in fields(GenerationConfig) if field.name != "_name"}


def check_search(options, where=None, types=None):
    """Check the values of generation options, and which of them are combined.

    Args:
        options: the options by name; fairseq's defaults hold for others.
        where: whose arguments these are, such as "generate" or "--eval-bleu-args"; without it they are flags.
        types: the number of types in the target vocabulary, if it is known.

    Raises:
        UserError: a value is impossible, or options exclude each other.
    """
    value = {name: options.get(name, field.default) for name, field in option_fields().items()}
    given = {name for name, field in option_fields().items() if value[name] != field.default}

    def word(name):
        """Return an option as the user writes it."""
        return name if where else "--" + name.replace("_", "-")

    def text(name):
        """Return an option as the user writes it, with its value."""
        return word(name) if value[name] is True else f"{word(name)} {value[name]}"

    def refuse(reason):
        raise UserError(f"{where}: {reason}" if where else reason)

    for name, (is_possible, rule) in RANGES.items():
        if name == "min_len" and (where == "--eval-bleu-args" or types is not None):
            continue  # a training may translate its validation set to nothing, which has BLEU 0
        if name in given and not is_possible(value[name]):
            refuse(f"{text(name)}: {rule}")
    chosen = [name for name in SEARCHES if name in given]
    if len(chosen) > 1:
        refuse(f"{' and '.join(map(text, chosen))} are different searches: leave out all but one")
    for name in ("sampling_topk", "sampling_topp"):
        if name in given and not value["sampling"]:
            refuse(f"{text(name)} needs {word('sampling')}")
    if {"sampling_topk", "sampling_topp"} <= given:
        refuse(f"{text('sampling_topk')} and {text('sampling_topp')} exclude each other: leave one out")
    if "diverse_beam_strength" in given and "diverse_beam_groups" not in given:
        refuse(f"{text('diverse_beam_strength')} needs {word('diverse_beam_groups')}")
    if value["nbest"] > value["beam"] and not value["score_reference"]:
        refuse(f"{text('nbest')} is more than {text('beam')}, and the search finds no more: raise the beam")
    if value["min_len"] > value["max_len_b"] and not value["max_len_a"] and not value["match_source_len"]:
        refuse(f"{text('max_len_b')} is less than {text('min_len')}: raise one, or lower the other")
    if value["score_reference"]:
        for name in OF_SEARCHES:
            if name in given:
                refuse(f"{text('score_reference')} does not search: leave out {word(name)}")
        if value["print_alignment"] == "soft":
            refuse(f"{text('score_reference')} has only hard alignments: leave out {text('print_alignment')}")
    if "lm_weight" in given and value["lm_path"] is None:
        refuse(f"{text('lm_weight')} needs {word('lm_path')}, a language model")
    beam = value["beam"] if types is None else min(value["beam"], types - 1)  # as fairseq lowers it
    if "diverse_beam_groups" in given and beam % value["diverse_beam_groups"]:
        lowered = "" if beam == value["beam"] else f", lowered to {beam} of {types} types,"
        refuse(f"{text('beam')}{lowered} is not divisible by {text('diverse_beam_groups')}")
    if types is None:
        return
    if value["sampling_topk"] > types:
        refuse(f"{text('sampling_topk')}: the target vocabulary has only {types} types")
    for name in ("diversity_rate", "constraints"):
        if name in given and 2 * beam >= types:
            refuse(
                f"{text(name)} chooses from twice {text('beam')} types, but the vocabulary has {types}: lower the beam"
            )


def check_names_and_types(options, where, known=None):
    """Check options that did not come through a parser.

    Args:
        options: the options by name.
        where: whose arguments these are, such as "generate" or "--eval-bleu-args".
        known: the options that there are, by default all of fairseq's generation.

    Raises:
        UserError: there is no option of a name, or a value has another type.
    """
    known = option_fields() if known is None else known
    check_names(where, options, known)
    for name, value in options.items():
        check_type(name, value, option_fields()[name].type, where)


def check_names(where, given, known):
    """Raises UserError if one of the options that are given is not known. The message has the most similar one."""
    for name in given:
        if name not in known:
            others = difflib.get_close_matches(name, known, n=1) or sorted(known)
            raise UserError(f"{where}: {name}: there is no such option; there is {', '.join(others)}")


def check_type(name, value, kind, where):
    """Raises UserError if the value of an argument has another type than `kind`, as the data classes of fairseq name
    it. Whole numbers are numbers."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    kinds = typing.get_args(kind) if is_union else (kind,)
    if not any(fits(value, part) for part in kinds):
        raise UserError(f"{where}: {name} {value!r}: must be {' or '.join(map(describe, kinds))}")


def fits(value, kind):
    if kind is typing.Any:
        return True
    if is_choice(kind):
        return value in [member.value for member in kind]
    if kind is bool:
        return isinstance(value, bool)
    return isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)


def describe(kind):
    """Return a type in words."""
    if is_choice(kind):
        return "one of " + ", ".join(member.value for member in kind)
    return WORDS.get(kind, "a path")


def is_choice(kind):
    return isinstance(kind, type) and issubclass(kind, Enum)


def check_eval_bleu_args(options):
    """Check the options of ``--eval-bleu-args``, which translate the validation set in training.

    Raises:
        UserError: an option does not exist, has no effect or an impossible value, or options exclude each other.
    """
    where = "--eval-bleu-args"
    check_names_and_types(options, where)
    for name in (*OF_REFERENCES, "constraints", "lm_path", "lm_weight", "replace_unk"):
        if options.get(name):
            raise UserError(f"{where}: {name}: has no effect on translations of the validation set: leave it out")
    check_search(options, where)


def check_flags_of_generation(words):
    """Check the flags of ``fairseq-generate`` before it is run.

    Args:
        words: the words after the name of the command.

    Raises:
        UserError: a flag does not exist, or has a value that the command refuses.
    """
    from fairseq import options

    parser = options.get_generation_parser()

    def refuse(message):
        raise UserError(f"fairseq-generate: {message}")

    parser.error = refuse
    options.parse_args_and_arch(parser, list(words))


@mends("fairseq.options", "parse_args_and_arch")
def refuse_impossible_options(parse_args_and_arch):
    """Refuse options of ``fairseq-generate`` and ``fairseq-interactive`` before the model is loaded.

    Why: fairseq ignores some, and fails on others with a traceback that does not name them. Needed: always.
    """

    @functools.wraps(parse_args_and_arch)
    def parse_args_and_check_search(*args, **kwargs):
        parsed = parse_args_and_arch(*args, **kwargs)
        options = vars(parsed[0] if isinstance(parsed, tuple) else parsed)
        if "beam" in options and "post_process" in options:
            check_command(options)
        return parsed

    return parse_args_and_check_search


def check_command(options):
    """Raises UserError if ``fairseq-generate`` or ``fairseq-interactive`` cannot work with its options."""
    from fairseq.data.data_utils import post_process

    check_search(options)
    symbol = options["post_process"]
    try:
        post_process("", symbol)
    except NotImplementedError as error:
        raise UserError(f"--post-process {symbol}: choose one of {POST_PROCESSES}") from error
    if options["replace_unk"] is not None and symbol:
        raise UserError(
            "--replace-unk counts the tokens of the data, and --post-process joins them before: leave out "
            "--post-process, and join the sub-words of the output"
        )
    is_interactive = "buffer_size" in options
    for name in (*OF_REFERENCES, "lm_path", "results_path") if is_interactive else ():
        if options[name]:
            raise UserError(f"--{name.replace('_', '-')}: only fairseq-generate can do this: leave it out")
    for name in ("input", "lm_path"):
        file = options.get(name) or "-"
        if file != "-" and "://" not in file and not os.path.isfile(file):
            raise UserError(f"--{name.replace('_', '-')} {file}: no such file")
    number, shard = options["distributed_world_size"], options["distributed_rank"]
    if not (is_interactive or 0 <= shard < number):
        raise UserError(f"--shard-id {shard}: with --num-shards {number} it must be from 0 to {number - 1}")


@mends("fairseq.options", "get_generation_parser")
def obey_flags_of_generation(get_generation_parser):
    """Let ``fairseq-generate --sacrebleu`` do as ``--scoring sacrebleu``, and ``--num-shards 4 --shard-id 0`` translate
    a quarter of the batches.

    Why: fairseq ignores the first, although its help and its warnings name it, and reads the size of a distributed job
    instead of the others. ``fairseq_cli/generate.py`` may be imported before PyTorch, and so before this package;
    therefore this patch changes the parser. Needed: always.
    """

    @functools.wraps(get_generation_parser)
    def get_generation_parser_with_flags(interactive=False, **settings):
        parser = get_generation_parser(interactive=interactive, **settings)
        if not interactive:  # which has no references, and always translates all of its input
            actions = parser._option_string_actions
            actions["--num-shards"].dest, actions["--shard-id"].dest = "distributed_world_size", "distributed_rank"
            action = actions["--sacrebleu"]
            action.dest, action.const, action.default = "scoring", "sacrebleu", argparse.SUPPRESS
        return parser

    return get_generation_parser_with_flags


@mends("fairseq.tasks.fairseq_task", "FairseqTask.build_generator")
def refuse_impossible_search(build_generator):
    """Refuse options that cannot work with the vocabulary or the data, also where no command has checked the options.

    Why: fairseq fails with a traceback in the first batch. Needed: always.
    """

    @functools.wraps(build_generator)
    def build_generator_of_possible_search(
        self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None
    ):
        options = {name: getattr(args, name, field.default) for name, field in option_fields().items()}
        language_model = (extra_gen_cls_kwargs or {}).get("lm_model")
        if language_model is not None:
            check_language_model(language_model, options, self.target_dictionary)
        check_search(options, types=len(self.target_dictionary))
        for name in SEARCHES if prefix_allowed_tokens_fn else ():
            if options[name] != option_fields()[name].default:
                raise UserError(f"prefix_allowed_tokens_fn and {name} are different searches: leave one out")
        for name in ("score_reference", "prefix_size"):
            for dataset in self.datasets.values() if options[name] else ():
                require_targets(dataset, f"--{name.replace('_', '-')}")
        generator = build_generator(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        longest = getattr(generator, "max_len", inf) - 1
        if options["min_len"] > longest:
            raise UserError(f"--min-len {options['min_len']}: a translation of this model has at most {longest} tokens")
        return generator

    return build_generator_of_possible_search


def check_language_model(model, options, dictionary):
    """Raises UserError if the model of ``--lm-path`` is no language model, or one of other words. A warning says if its
    weight is 0."""
    from fairseq.models import FairseqLanguageModel

    path = options["lm_path"]
    if not options["lm_weight"]:
        logger.warning(f"--lm-path {path}: the language model has no effect, because --lm-weight is 0")
    if not isinstance(model, FairseqLanguageModel):
        raise UserError(f"--lm-path {path}: a {type(model).__name__}, but this must be a language model")
    words = getattr(model.decoder, "dictionary", dictionary)
    if words != dictionary:
        raise UserError(
            f"--lm-path {path}: its dictionary ({len(words)} types) is not the target dictionary ({len(dictionary)} "
            "types): train the language model with fairseq-preprocess --srcdict, the target dictionary of the data"
        )
