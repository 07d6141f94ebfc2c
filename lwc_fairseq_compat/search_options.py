"""Options of the search: values that are impossible, and options that exclude each other or have no effect.

:func:`check_search` is the same for all doors: the commands, their flags in a table, ``--eval-bleu-args`` and Python.
"""

import argparse
import difflib
import functools
import logging
import types
import typing
from dataclasses import fields
from enum import Enum
from math import inf

from .data import require_targets
from .errors import UserError, flag
from .files import is_missing_file
from .hooks import replaces

logger = logging.getLogger(__name__)

RANGES = (
    (("beam", "nbest", "sampling_topk", "diverse_beam_groups"), lambda number: number >= 1, "at least 1"),
    (("max_len_b", "min_len", "no_repeat_ngram_size"), lambda size: size >= 0, "at least 0"),
    (("max_len_a",), lambda factor: 0 <= factor < inf, "a number from 0"),
    (("lenpen",), lambda power: abs(power) <= 50, "a number from -50 to 50"),
    (("lm_weight",), lambda weight: abs(weight) <= 1000, "a number from -1000 to 1000"),
    (("unkpen", "diverse_beam_strength"), lambda size: abs(size) <= 1e6, "a number from -1000000 to 1000000"),
    (("diversity_rate",), lambda rate: 0 <= rate <= 1e6, "a number from 0 to 1000000"),
    (("temperature",), lambda temperature: 1e-4 <= temperature <= 1e4, "a number from 0.0001 to 10000"),
    (("sampling_topp",), lambda share: 0 < share <= 1, "above 0 and at most 1"),
)
"""Names of options, the test of their values, and the rule for a message. NaN fails every test. Defaults, such as -1
(off), are not tested."""

NEEDS = {
    "sampling_topk": "sampling",
    "sampling_topp": "sampling",
    "diverse_beam_strength": "diverse_beam_groups",
    "lm_weight": "lm_path",
}
"""Options that have an effect only together with another option."""

SEARCHES = ("sampling", "diverse_beam_groups", "match_source_len", "diversity_rate", "constraints")
"""Options that choose the kind of search. A search uses only one of them."""

OF_SEARCHES = (*SEARCHES, "prefix_size", "no_repeat_ngram_size", "lm_path", "replace_unk", "lenpen", "unnormalized")
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
        options: the options by name; missing options have fairseq's defaults.
        where: what a message names first, such as "generate" or "--eval-bleu-args"; None for flags of a command.
        types: the number of types in the target vocabulary, if it is known.

    Raises:
        UserError: a value is impossible, or options exclude each other.
    """
    value = {name: options.get(name, field.default) for name, field in option_fields().items()}
    given = {name for name, field in option_fields().items() if value[name] != field.default}

    def word(name):
        """Return an option as the user writes it."""
        return name if where else flag(name)

    def text(name):
        """Return an option as the user writes it, with its value."""
        return word(name) if value[name] is True else f"{word(name)} {value[name]}"

    def refuse(reason):
        raise UserError(f"{where}: {reason}" if where else reason)

    for names, is_possible, rule in RANGES:
        for name in names:
            if name in given and not is_possible(value[name]):
                refuse(f"{text(name)}: must be {rule}")
    chosen = [name for name in SEARCHES if name in given]
    if len(chosen) > 1:
        refuse(f"{' and '.join(map(text, chosen))} are different searches: leave out all but one")
    for name, needed in NEEDS.items():
        if name in given and needed not in given:
            refuse(f"{text(name)} needs {word(needed)}{', a language model' if needed == 'lm_path' else ''}")
    if {"sampling_topk", "sampling_topp"} <= given:
        refuse(f"{text('sampling_topk')} and {text('sampling_topp')} exclude each other: leave one out")
    if {"lenpen", "unnormalized"} <= given:
        refuse(f"{text('lenpen')} has no effect with {text('unnormalized')}: leave one out")
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
    """Raises UserError if an option that no parser has checked is unknown or has a value of the wrong type.

    By default, the known options are those of fairseq's generation. `where` is as in :func:`check_search`.
    """
    check_names(where, options, known or option_fields())
    for name, value in options.items():
        check_type(name, value, option_fields()[name].type, where)


def check_names(where, given, known):
    """Raises UserError if a given option is unknown. The message names the most similar known option, or else all."""
    for name in given:
        if name not in known:
            others = difflib.get_close_matches(name, known, n=1) or sorted(known)
            raise UserError(f"{where}: {name}: there is no such option; there is {', '.join(others)}")


def check_type(name, value, kind, where):
    """Raises UserError if the value of an argument does not have the type `kind`, an annotation of a dataclass field
    of fairseq. A float may be given as an int."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    words = []
    for part in typing.get_args(kind) if is_union else (kind,):
        if isinstance(part, type) and issubclass(part, Enum):
            choices = [member.value for member in part]
            fits, word = value in choices, "one of " + ", ".join(choices)
        elif part is typing.Any:
            return
        else:
            is_instance = isinstance(value, (int, float) if part is float else part)
            fits, word = is_instance and (part is bool or not isinstance(value, bool)), WORDS.get(part, "a path")
        if fits:
            return
        words.append(word)
    raise UserError(f"{where}: {name} {value!r}: must be {' or '.join(words)}")


def check_eval_bleu_args(options):
    """Raises UserError if an option of ``--eval-bleu-args`` does not exist, has no effect or has an impossible value,
    or if options exclude each other. Training translates the validation set with these options."""
    where = "--eval-bleu-args"
    check_names_and_types(options, where)
    for name in (*OF_REFERENCES, "constraints", "lm_path", "lm_weight", "replace_unk"):
        if options.get(name):
            raise UserError(f"{where}: {name}: has no effect on translations of the validation set: leave it out")
    check_search(options, where)


def check_generation(options):
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
            raise UserError(f"{flag(name)}: only fairseq-generate can do this: leave it out")
    for name in ("input", "lm_path"):
        file = options.get(name) or "-"
        if file != "-" and is_missing_file(file):
            raise UserError(f"{flag(name)} {file}: no such file")
    number, shard = options["distributed_world_size"], options["distributed_rank"]
    if not (is_interactive or 0 <= shard < number):
        raise UserError(f"--shard-id {shard}: with --num-shards {number} it must be from 0 to {number - 1}")


@replaces("fairseq.options", "get_generation_parser")
def obey_flags_of_generation(get_generation_parser, interactive=False, **settings):
    """Let ``fairseq-generate --sacrebleu`` mean ``--scoring sacrebleu``, and let ``--num-shards 4 --shard-id 0``
    translate a quarter of the batches.

    Why: fairseq ignores --sacrebleu, although its help and its warnings name this option. In place of the shard options
    it reads the size and the rank of a distributed job. ``fairseq_cli/generate.py`` may be imported before PyTorch, and
    so before this package; therefore this patch changes the parser. Needed: always.
    """
    parser = get_generation_parser(interactive=interactive, **settings)
    if not interactive:  # fairseq-interactive has no references, and always translates all input
        actions = parser._option_string_actions
        actions["--num-shards"].dest, actions["--shard-id"].dest = "distributed_world_size", "distributed_rank"
        action = actions["--sacrebleu"]
        action.dest, action.const, action.default = "scoring", "sacrebleu", argparse.SUPPRESS
    return parser


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.build_generator")
def refuse_impossible_search(
    build_generator, self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None, prefix_allowed_tokens_fn=None
):
    """Refuse options that cannot work with the vocabulary or the data, also where no command has checked the options.

    Why: fairseq fails with a traceback in the first batch. Needed: always.
    """
    for name in ("print_step", "retain_iter_history"):
        if getattr(args, name, False):  # the tasks of models that refine have generators of their own
            raise UserError(
                f"{flag(name)} only works with models that refine their translations step by step: leave it out"
            )
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
            require_targets(dataset, flag(name))
    generator = build_generator(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
    longest = getattr(generator, "max_len", inf) - 1
    if options["min_len"] > longest:
        raise UserError(f"--min-len {options['min_len']}: a translation of this model has at most {longest} tokens")
    return generator


def check_language_model(model, options, dictionary):
    """Raises UserError if the model of ``--lm-path`` is not a language model or has another dictionary. Warns if
    ``--lm-weight`` is 0."""
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
