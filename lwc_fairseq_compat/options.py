"""Options that are malformed, impossible, or need another option. fairseq fails on them later, or not at all."""

import ast
import dataclasses
import difflib
import os
import sys
from argparse import ArgumentTypeError
from math import inf, isclose
from types import SimpleNamespace

from .errors import UserError, flag
from .files import is_missing_file
from .hooks import replaces
from .scoring import check_bleu, read_json
from .search_options import check_eval_bleu_args, check_generation
from .text import is_command_of_fairseq


def check_command(values):
    """Check the options of a command.

    Args:
        values: their values by name, without dashes.

    Raises:
        UserError: they cannot work.
    """
    if problem := next(problems_of_command(Options(**values)), None):
        raise UserError(problem)


class Options(SimpleNamespace):
    """The values of options by name. An option that a command does not have is None."""

    def __getattr__(self, name):
        return None


def problems_of_command(o):
    """Yield what is wrong with the options of any command. After the first problem, later checks may fail."""
    if o.tokenizer == "moses" and not (o.source_lang and o.target_lang):  # moses needs them before the data is loaded
        yield "--tokenizer moses has rules for each language: add the languages, -s SOURCE -t TARGET"
    if o.task in TASKS_OF_OTHER_MODELS:
        from fairseq.models import ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel

        if issubclass(ARCH_MODEL_REGISTRY.get(o.arch, object), FairseqEncoderDecoderModel):
            yield (
                f"--task {o.task} {TASKS_OF_OTHER_MODELS[o.task]}, but --arch {o.arch} is a model for one pair of "
                "languages: use a translation task, such as --task translation"
            )
    for bpe, name in (("subword_nmt", "bpe_codes"), ("sentencepiece", "sentencepiece_model")):
        file = getattr(o, name)
        if o.bpe == bpe and file in NOT_GIVEN:
            yield f"--bpe {bpe} needs {flag(name)} FILE"
        if o.bpe == bpe and is_missing_file(file):
            yield f"{flag(name)} {file}: no such file"
    is_training = o.max_epoch is not None  # no other command has this option
    if is_training and not o.optimizer:
        yield "the training has no optimizer: add one, such as --optimizer adam, and its --lr"
    if o.best_checkpoint_metric == "bleu" and o.eval_bleu is False:
        yield "--best-checkpoint-metric bleu: add --eval-bleu, which computes it"
    if not is_dictionary(vars(o).get("model_overrides", "{}")):
        yield f"--model-overrides {o.model_overrides}: {A_DICTIONARY}"
    if is_training:
        yield from problems_of_training(o)


NOT_GIVEN = (None, "???")  # which OmegaConf calls missing

TASKS_OF_OTHER_MODELS = {
    "language_modeling": "trains language models",
    "multilingual_translation": "trains models with an encoder and a decoder for each language pair, such as "
    "multilingual_transformer",
}


def problems_of_training(o):
    """Yield what is wrong with the options of a training, before its data and its model are loaded."""
    for rule, (is_right, names) in VALUES.items():
        for name in names:
            if name in vars(o) and not is_right(getattr(o, name)):
                yield f"{flag(name)} {as_given(getattr(o, name))}: {rule}"
    rates = o.lr if isinstance(o.lr, list) else [o.lr]
    if o.lr_scheduler in ONE_RATE and len(rates) > 1:
        yield (
            f"--lr {as_given(rates)}: --lr-scheduler {o.lr_scheduler} takes one learning rate; --lr-scheduler fixed "
            "takes one for each epoch"
        )
    for problem in problems_of_schedule(o, rates[0]):
        yield f"--lr-scheduler {o.lr_scheduler}: {problem}"
    counts = ("patience", "keep_best_checkpoints")  # -1 means none
    users = [f"{flag(name)} {getattr(o, name)}" for name in counts if getattr(o, name) > 0]
    if o.lr_scheduler == "reduce_lr_on_plateau":
        users.append("--lr-scheduler reduce_lr_on_plateau")
    for reason in reasons_against_validation(o) if users else ():
        yield f"{users[0]} uses the results of validation, but {reason}: leave one of them out"
    yield from problems_of_files(o)
    if o.eval_bleu:
        check_bleu(vars(o))
        check_eval_bleu_args(read_json(vars(o), "eval_bleu_args", {"beam": 4, "lenpen": 0.6}))


def as_given(value):
    """Return a value as it is given on the command line, where a list has commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def within(low, high=inf):
    """Return a test of whether a number, or each one of a list, is at least `low` and less than `high`."""

    def is_within(value):
        values = value if isinstance(value, list) else [value]
        return values != [] and all(low <= number < high for number in values if isinstance(number, int | float))

    return is_within


def is_pair(text, limit):
    """Return whether a text or a list holds two numbers that are at least 0 and less than a limit."""
    try:
        first, second = ast.literal_eval(str(text))
        return 0 <= first < limit and 0 <= second < limit
    except (ValueError, TypeError, SyntaxError):
        return False


def is_dictionary(text, kind_of_keys=object, kind_of_values=object):
    """Whether text is a dictionary of Python, with keys and values of certain types."""
    try:
        items = ast.literal_eval(text).items()
    except (AttributeError, ValueError, TypeError, SyntaxError):
        return False
    return all(isinstance(key, kind_of_keys) and isinstance(value, kind_of_values) for key, value in items)


TWO_BETAS = "give two numbers in [0, 1), such as '(0.9, 0.98)'"
A_DICTIONARY = "give a dictionary, such as {'name': 0.1}"

VALUES = {
    "must be at least 0": (
        within(0),
        ("max_epoch", "max_update", "warmup_updates", "warmup_steps", "hold_steps", "decay_steps", "num_workers"),
    ),
    "must be at least 1": (
        within(1),
        (
            *("save_interval", "validate_interval", "log_interval", "max_tokens", "batch_size", "max_tokens_valid"),
            *("batch_size_valid", "required_batch_size_multiple"),
        ),
    ),
    "must be a number that is not negative": (
        within(0),
        ("weight_decay", "momentum", "rmsprop_momentum", "min_lr", "end_learning_rate"),
    ),
    # With 0, a weight without a gradient becomes 0 / 0.
    "must be a number above 0": (
        lambda value: within(0)(value) and value != 0,
        ("adam_eps", "adamax_eps", "adadelta_eps", "lamb_eps", "rmsprop_eps"),
    ),
    "must be in [0, 1)": (within(0, 1), ("rmsprop_rho", "adadelta_rho")),
    "give learning rates that are not negative": (within(0), ("lr",)),
    "give whole numbers from 1": (within(1), ("update_freq",)),
    TWO_BETAS: (lambda betas: is_pair(betas, 1), ("adam_betas", "adamax_betas", "lamb_betas")),
    "give two numbers, such as '(1e-30, 1e-3)'": (lambda pair: is_pair(pair, inf), ("adafactor_eps",)),
    A_DICTIONARY: (is_dictionary, ("optimizer_overrides", "epoch2lr", "update2lr")),
}
"""The rule for a message, the test of a value, and the options of a training whose values must pass the test."""

ONE_RATE = ("inverse_sqrt", "cosine", "tri_stage", "triangular", "reduce_lr_on_plateau", "step", "manual")
"""The schedules for which --lr has only one value."""


def problems_of_schedule(o, rate):
    """Yield what is wrong with the options of the schedule of the learning rate."""
    match o.lr_scheduler:
        case "inverse_sqrt":
            if o.warmup_updates == 0:
                yield "--warmup-updates 0: the rate falls from the end of the warm-up on: give at least 1"
        case "polynomial_decay":
            if not (o.total_num_update or o.max_update):
                yield "add --total-num-update, the number of updates over which the rate decays"
        case "cosine":
            if o.min_lr >= rate:
                yield f"--min-lr {o.min_lr} must be less than --lr {rate}"
            if o.t_mult < 1:
                yield f"--t-mult {o.t_mult}: must be at least 1"
            if not o.lr_period_updates > 0 and not o.max_update:
                yield "add --lr-period-updates or --max-update, the number of updates of the first period"
            if not o.lr_period_updates > 0 and o.max_update <= o.warmup_updates:
                yield f"--max-update {o.max_update} must be more than --warmup-updates {o.warmup_updates}"
        case "tri_stage":
            ratio = o.phase_ratio
            if o.final_lr_scale <= 0:
                yield f"--final-lr-scale {o.final_lr_scale}: must be more than 0"
            if ratio is None and not o.decay_steps:
                yield "add --decay-steps, or --phase-ratio and --max-update"
            if ratio is not None and not (len(ratio) == 3 and min(ratio) >= 0 and isclose(sum(ratio), 1)):
                yield f"--phase-ratio {as_given(ratio)}: give three parts whose sum is 1, such as 0.1,0.4,0.5"
            if ratio is not None and o.max_update * ratio[2] < 1:
                yield "--phase-ratio needs --max-update, with at least one update for the last of the three parts"
        case "triangular":
            if o.max_lr in NOT_GIVEN:
                yield "add --max-lr, the highest learning rate"
            if o.max_lr <= rate:
                yield f"--max-lr {o.max_lr} must be more than --lr {rate}"
            if o.lr_period_updates < 2:
                yield f"--lr-period-updates {o.lr_period_updates}: must be at least 2"
        case "reduce_lr_on_plateau":
            if o.lr_shrink >= 1:
                yield f"--lr-shrink {o.lr_shrink}: must be less than 1"
        case "step":
            if o.lr_deacy_period < 1:
                yield f"--lr-deacy-period {o.lr_deacy_period}: must be at least 1"
            if o.lr_decay > 1:
                yield f"--lr-decay {o.lr_decay}: must be at most 1"
            if o.min_lr >= rate:
                yield f"--min-lr {o.min_lr} must be less than --lr {rate}"
        case "manual":
            for name in ("epoch2lr", "update2lr"):
                rates = getattr(o, name)
                if not is_dictionary(rates, str, int | float):
                    yield f"{flag(name)} {rates}: give numbers in quotes and rates, such as {{'1-3': 0.1, '4': 0.01}}"


def reasons_against_validation(o):
    """Yield why a training never validates."""
    if o.disable_validation:
        yield "--disable-validation is given"
    if o.validate_after_updates > o.max_update > 0:
        yield f"--validate-after-updates {o.validate_after_updates} is more than --max-update {o.max_update}"
    other_times = (o.validate_interval_updates, o.save_interval_updates, o.max_update, o.stop_time_hours)
    if o.validate_interval > o.max_epoch > 0 and max(other_times) <= 0:
        yield f"--validate-interval {o.validate_interval} is more than --max-epoch {o.max_epoch}"


def problems_of_files(o):
    """Yield which files and folders of a training are missing, and which options of resuming exclude each other."""
    last = "checkpoint_last.pt"
    restored = o.restore_file or last
    if o.finetune_from_model:
        resets = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
        of_resuming = [flag(name) for name in resets if getattr(o, name)]
        of_resuming += [] if restored == last else [f"--restore-file {restored}"]
        for other in of_resuming:
            yield f"--finetune-from-model, which takes only the weights, cannot be combined with {other}: leave one out"
    if restored != last:
        yield from problems_of_checkpoint("restore_file", restored.replace(".pt", f"{o.checkpoint_suffix or ''}.pt"))
    elif not os.path.exists(os.path.join(o.save_dir or "", last)):
        yield from problems_of_checkpoint("continue_once", o.continue_once)
        yield from problems_of_checkpoint("finetune_from_model", o.finetune_from_model)
    if o.quantization_config_path and not os.path.isfile(o.quantization_config_path):
        yield f"--quantization-config-path {o.quantization_config_path}: no such file"
    folder = os.path.dirname(o.log_file or "")
    if folder and not os.path.isdir(folder):
        yield f"--log-file {o.log_file}: there is no folder {folder}"


def problems_of_checkpoint(name, path):
    """Yield why training cannot go on from a checkpoint."""
    if path and os.path.isdir(path):
        best = os.path.join(path, "checkpoint_best.pt")
        yield f"{flag(name)} {path} is a folder: give a checkpoint in it, such as {best}"
    if path and is_missing_file(path):
        yield f"{flag(name)} {path}: no such file; to begin a new training, leave the option out"


def parse_betas(betas):
    """Parse β₁ and β₂ from a command line's "(0.9, 0.98)" or a configuration's list.

    Raises:
        UserError: they are not two numbers in [0, 1).
    """
    if not is_pair(betas, 1):
        raise UserError(f"--adam-betas {betas}: {TWO_BETAS}")
    return tuple(ast.literal_eval(str(betas)))


def parse_words(command, words):
    """Return the options that a command of fairseq reads from its arguments, as the command does before it loads data.

    Args:
        command: "fairseq-train" or "fairseq-generate".
        words: the arguments.

    Raises:
        UserError: an argument is unknown, or the command refuses a value.
    """
    from fairseq import options

    make = {"fairseq-train": options.get_training_parser, "fairseq-generate": options.get_generation_parser}
    parser = make[command]()

    def refuse(message):
        if message.startswith(UNKNOWN):
            name = message.removeprefix(UNKNOWN).split()[0].partition("=")[0]
            similar = difflib.get_close_matches(name, parser._option_string_actions, n=1)
            message += f"; there is {similar[0]}" if similar else ": leave them out"
        raise UserError(f"{command}: {message}")

    parser.error = refuse
    parsed = options.parse_args_and_arch(parser, list(words))
    if command == "fairseq-generate":
        check_generation(vars(parsed))
    return parsed


UNKNOWN = "unrecognized arguments: "  # as argparse calls them


@replaces("fairseq.options", "parse_args_and_arch")
def check_options(parse_args_and_arch, *args, **kwargs):
    """Refuse options that cannot work together.

    Why: fairseq ignores some, and fails on others later, with a traceback that does not name the cause. Needed: always.
    """
    parsed = parse_args_and_arch(*args, **kwargs)
    options = vars(parsed[0] if isinstance(parsed, tuple) else parsed)
    if options.get("lr_scheduler") == "polynomial_decay" and options["total_num_update"] is None:
        options["total_num_update"] = options["max_update"]  # its default, which fairseq-train loses
    check_command(options)
    if "beam" in options and "post_process" in options and is_command_of_fairseq():  # other programs have other rules
        check_generation(options)
    if "beam" in options and "sacrebleu" not in options:
        # Other programs with the parser of fairseq-generate read the names that `obey_flags_of_generation` changes.
        options |= {"num_shards": options["distributed_world_size"], "shard_id": options["distributed_rank"]}
        options["sacrebleu"] = options["scoring"] == "sacrebleu"
    return parsed


@replaces("fairseq.options", "parse_args_and_arch")
def parse_model_before_help(parse_args_and_arch, parser, input_args=None, *args, **kwargs):
    """Let --help also show the options of the model, the task, the criterion, the optimizer and so on. Say that --arch
    is missing.

    Why: fairseq parses twice, the second time with the options of what the first parsing found. But the first one
    prints the help, and ends the command. Without a model, fairseq raises an error without a message. Needed: always.
    """
    words = sys.argv[1:] if input_args is None else input_args
    others = [word for word in words if word not in ("-h", "--help")]

    def parse_without_help(*ignored):
        del parser.parse_known_args  # from now on, the method of the class
        namespace, rest = parser.parse_known_args(others)
        if getattr(namespace, "arch", "") is None:
            if others == words:
                raise UserError("--arch is missing: name a model, such as --arch transformer")
            parser.print_help()
            parser.exit()
        return namespace, rest

    parser.parse_known_args = parse_without_help
    return parse_args_and_arch(parser, input_args, *args, **kwargs)


@replaces("fairseq.options", "parse_args_and_arch")
def accept_local_rank_with_hyphen(parse_args_and_arch, parser, *args, **kwargs):
    """Let ``python -m torch.distributed.launch`` start the commands.

    Why: it passes ``--local-rank``, and fairseq knows ``--local_rank`` only. Needed: from torch 2.0.
    """
    if option := parser._option_string_actions.get("--local_rank"):
        parser._option_string_actions["--local-rank"] = option
    return parse_args_and_arch(parser, *args, **kwargs)


@replaces("fairseq.dataclass.utils", "eval_str_list")
def name_malformed_list(eval_str_list, x, *args, **kwargs):
    """Say that a list of numbers, such as the value of ``--lr``, is malformed.

    Why: fairseq lets Python's error through. Needed: always.
    """
    try:
        return eval_str_list(x, *args, **kwargs)
    except (SyntaxError, ValueError) as error:
        raise ArgumentTypeError(f"{x}: give values with commas between them, such as 1,2") from error


@replaces("fairseq.dataclass.configs", "FairseqDataclass._get_default")
def require_numbers_without_default(get_default, self, attribute_name):
    """Say that a number without a default, such as ``--max-lr`` of the schedule ``triangular``, is missing.

    Why: fairseq's parser refuses the default, ``???``, which is no number. Needed: always.
    """
    default = get_default(self, attribute_name)
    is_missing = default == "???" and self._get_type(attribute_name) in (int, float)
    return dataclasses.MISSING if is_missing else default


@replaces("fairseq.options", "get_validation_parser")
def validate_without_task(get_validation_parser, default_task=None):
    """Let ``fairseq-validate`` run without ``--task``, as ``fairseq-generate`` does.

    Why: the command fails with ``KeyError: None``. It needs the option only to know the options of the task; it
    validates with the task in the checkpoint. Needed: always.
    """
    return get_validation_parser(default_task or "translation")


@replaces(
    "fairseq.criterions.label_smoothed_cross_entropy_with_alignment",
    "LabelSmoothedCrossEntropyCriterionWithAlignment.compute_alignment_loss",
)
def name_model_without_attention(compute_alignment_loss, self, sample, net_output):
    """Say that a model gives no attention in training.

    Why: fairseq fails with a traceback. Needed: always.
    """
    if net_output[1]["attn"] is None or net_output[1]["attn"][0] is None:
        raise UserError(
            "--criterion label_smoothed_cross_entropy_with_alignment: this model computes no attention weights in "
            "training; choose another criterion, or a model that does, such as transformer_align with an "
            "--alignment-layer, counted from 0, that it has"
        )
    return compute_alignment_loss(self, sample, net_output)


@replaces("fairseq.tasks.denoising", "DenoisingTask.add_args")
@replaces("fairseq.tasks.multilingual_denoising", "MultilingualDenoisingTask.add_args")
def add_missing_options(add_args, parser):
    """Let ``--task denoising`` and ``multilingual_denoising`` train BART.

    Why: the task and the model both add ``--max-source-positions`` and ``--max-target-positions``, which ends in an
    ``ArgumentError``. Needed: always.
    """
    add_argument = parser.add_argument

    def add_if_missing(*names, **settings):
        if not any(name in parser._option_string_actions for name in names):
            add_argument(*names, **settings)

    parser.add_argument = add_if_missing
    try:
        add_args(parser)
    finally:
        parser.add_argument = add_argument


@replaces("fairseq.tasks.translation_from_pretrained_bart", "TranslationFromPretrainedBARTTask.__init__")
def keep_arguments_of_bart_task(init, self, args, *dictionaries):
    """Let ``--task translation_from_pretrained_bart`` load data.

    Why: it reads its options from ``args``, which its base class no longer sets. Without ``--langs`` it ends in a
    traceback. Needed: always.
    """
    if not args.langs:
        raise UserError(
            "--task translation_from_pretrained_bart: add --langs, the languages of the pretrained model, such as "
            "--langs de,en"
        )
    self.args = args
    init(self, args, *dictionaries)
