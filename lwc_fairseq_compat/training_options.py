"""Options of training that are malformed, impossible, or need another option. fairseq finds out later, or never."""

import functools
import math
import os

from .errors import UserError
from .hooks import mends
from .optimizers import check_optimizer_options, flag
from .schedules import check_schedule
from .scoring import check_bleu

COUNTS_FROM_0 = (
    "max_epoch",
    "max_update",
    "warmup_updates",
    "warmup_steps",
    "hold_steps",
    "decay_steps",
    "num_workers",
)
COUNTS_FROM_1 = (
    *("save_interval", "validate_interval", "log_interval", "max_tokens", "batch_size", "max_tokens_valid"),
    *("batch_size_valid", "required_batch_size_multiple"),
)
NOT_NEGATIVE = (
    *("adam_eps", "adamax_eps", "adadelta_eps", "lamb_eps", "rmsprop_eps", "weight_decay", "momentum"),
    *("rmsprop_momentum", "min_lr", "end_learning_rate"),
)
FRACTIONS = ("rmsprop_rho", "adadelta_rho")


def check_training(options):
    """Check the options of a training before its data and its model are loaded.

    Args:
        options: the values of the options by name, without dashes. Options may be missing.

    Raises:
        UserError: a value is impossible, or an option needs another one.
    """
    check_numbers(options)
    check_optimizer_options(options)
    check_schedule(options)
    check_validation(options)
    check_files(options)
    if options.get("eval_bleu"):
        check_bleu(options)


def check_numbers(options):
    """Raises UserError if a number is outside of its range."""
    ranges = [
        (COUNTS_FROM_0, "at least 0", lambda value: value >= 0),
        (COUNTS_FROM_1, "at least 1", lambda value: value >= 1),
        (NOT_NEGATIVE, "a number that is not negative", lambda value: 0 <= value < math.inf),
        (FRACTIONS, "in [0, 1)", lambda value: 0 <= value < 1),
    ]
    for names, expected, is_right in ranges:
        for name in names:
            value = options.get(name)
            if isinstance(value, int | float) and not is_right(value):
                raise UserError(f"{flag(name)} {value}: must be {expected}")
    check_list(options, "lr", "learning rates that are not negative", lambda rate: 0 <= rate < math.inf)
    check_list(options, "update_freq", "whole numbers from 1", lambda number: number >= 1)


def check_list(options, name, expected, is_right):
    """Raises UserError if a list of numbers is empty, or one of them is outside of the range."""
    values = options.get(name)
    if isinstance(values, list) and not (values and all(map(is_right, values))):
        raise UserError(f"{flag(name)} {','.join(map(str, values))}: give {expected}")


def check_validation(options):
    """Raises UserError if an option uses the results of validation, and the training never validates."""
    users = [f"{flag(name)} {options[name]}" for name in ("patience", "keep_best_checkpoints") if is_set(options, name)]
    if options.get("lr_scheduler") == "reduce_lr_on_plateau":
        users.append("--lr-scheduler reduce_lr_on_plateau")
    reason = why_never_validated(options)
    if users and reason:
        raise UserError(f"{users[0]} uses the results of validation, but {reason}: leave one of them out")


def why_never_validated(options):
    """Return why a training never validates, or None."""
    if options.get("disable_validation"):
        return "--disable-validation is given"
    after, updates = options.get("validate_after_updates") or 0, options.get("max_update") or 0
    if after > updates > 0:
        return f"--validate-after-updates {after} is more than --max-update {updates}"
    other_times = ("validate_interval_updates", "save_interval_updates", "max_update", "stop_time_hours")
    interval, epochs = options.get("validate_interval") or 1, options.get("max_epoch") or 0
    if interval > epochs > 0 and not any(is_set(options, name) for name in other_times):
        return f"--validate-interval {interval} is more than --max-epoch {epochs}"
    return None


def is_set(options, name):
    """Whether an option is given for which 0 or a negative number means none."""
    return (options.get(name) or 0) > 0


def check_files(options):
    """Raises UserError if a file that a training reads, or the folder of one that it writes, is not there."""
    last = os.path.join(options.get("save_dir") or "", "checkpoint_last.pt")
    restored = options.get("restore_file") or "checkpoint_last.pt"
    if options.get("finetune_from_model"):
        check_finetuning(options, restored)
    if restored != "checkpoint_last.pt":
        suffix = options.get("checkpoint_suffix") or ""
        check_checkpoint("restore_file", restored.replace(".pt", f"{suffix}.pt"))
    elif not os.path.exists(last):
        for name in ("continue_once", "finetune_from_model"):
            if options.get(name):
                check_checkpoint(name, options[name])
    quantization = options.get("quantization_config_path")
    if quantization and not os.path.isfile(quantization):
        raise UserError(f"--quantization-config-path {quantization}: no such file")
    log = options.get("log_file")
    if log and not os.path.isdir(os.path.dirname(log) or "."):
        raise UserError(f"--log-file {log}: there is no folder {os.path.dirname(log)}")


def check_finetuning(options, restored):
    """Raises UserError if --finetune-from-model, which begins a new training, is combined with options of resuming."""
    others = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
    given = [flag(name) for name in others if options.get(name)]
    if restored != "checkpoint_last.pt":
        given.append(f"--restore-file {restored}")
    if given:
        raise UserError(
            f"--finetune-from-model, which takes only the weights, cannot be combined with {given[0]}: leave one out"
        )


def check_checkpoint(name, path):
    """Raises UserError if a checkpoint to go on from is not there."""
    if os.path.isfile(path) or "://" in path:
        return
    if os.path.isdir(path):
        best = os.path.join(path, "checkpoint_best.pt")
        raise UserError(f"{flag(name)} {path} is a folder: give a checkpoint in it, such as {best}")
    raise UserError(f"{flag(name)} {path}: no such file; to begin a new training, leave the option out")


@mends("fairseq.utils", "parse_embedding")
def name_missing_embeddings(parse_embedding):
    """Say which file of ``--encoder-embed-path`` or ``--decoder-embed-path`` cannot be read.

    Why: fairseq ends with a traceback. Needed: always.
    """

    @functools.wraps(parse_embedding)
    def parse_named_embedding(embed_path):
        try:
            return parse_embedding(embed_path)
        except OSError as error:
            raise UserError(f"file of embeddings {embed_path}: {error.strerror}") from error

    return parse_named_embedding
