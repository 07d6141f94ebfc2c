"""Optimizers and schedules of the learning rate: what they need, and patches that say what is wrong with them."""

import argparse
import ast
import functools
import math
from traceback import walk_tb

from .errors import UserError
from .hooks import mends

BETAS = ("adam_betas", "adamax_betas", "lamb_betas")
ONE_RATE = ("inverse_sqrt", "cosine", "tri_stage", "triangular", "reduce_lr_on_plateau", "step", "manual")
"""The schedules that use only the first value of --lr."""


def flag(name):
    """Return an option as it is given on the command line."""
    return "--" + name.replace("_", "-")


def check_optimizer_and_schedule(options):
    """Check the options of the optimizer and of its schedule.

    Args:
        options: the values of the options by name, without dashes. Options may be missing.

    Raises:
        UserError: a value is impossible, or an option needs another one.
    """
    for name in BETAS:
        if name in options:
            parse_betas(options[name], flag(name))
    if "adafactor_eps" in options and not is_pair(options["adafactor_eps"], math.inf):
        raise UserError(f"--adafactor-eps {options['adafactor_eps']}: give two numbers, such as '(1e-30, 1e-3)'")
    read_dictionary(options, "optimizer_overrides")
    check_schedule(options)


def parse_betas(betas, name="--adam-betas"):
    """Parse β₁ and β₂ from a command line's "(0.9, 0.98)" or a configuration's list.

    Raises:
        UserError: they are not two numbers in [0, 1).
    """
    if not is_pair(betas, 1):
        raise UserError(f"{name} {betas}: give two numbers in [0, 1), such as '(0.9, 0.98)'")
    return tuple(ast.literal_eval(str(betas)))


def is_pair(text, limit):
    """Whether text, or a list, holds two numbers from 0 on that are less than a limit."""
    try:
        first, second = ast.literal_eval(str(text))
        return 0 <= first < limit and 0 <= second < limit
    except (ValueError, TypeError, SyntaxError):
        return False


def check_schedule(options):
    """Raises UserError if the schedule of the learning rate lacks what it needs."""
    schedule, rates = options.get("lr_scheduler"), options.get("lr")
    if schedule in ONE_RATE and isinstance(rates, list) and len(rates) > 1:
        raise UserError(
            f"--lr {','.join(map(str, rates))}: --lr-scheduler {schedule} takes one learning rate; --lr-scheduler "
            "fixed takes one for each epoch"
        )
    problem = SCHEDULES[schedule](options, (rates or [0.0])[0]) if schedule in SCHEDULES else None
    if problem:
        raise UserError(f"--lr-scheduler {schedule}: {problem}")


def problem_of_inverse_sqrt(options, rate):
    if options.get("warmup_updates") == 0:
        return "--warmup-updates 0: the rate falls from the end of the warm-up on: give at least 1"


def problem_of_polynomial_decay(options, rate):
    if not (options.get("total_num_update") or options.get("max_update")):
        return "add --total-num-update, the number of updates over which the rate decays"


def problem_of_cosine(options, rate):
    if options.get("min_lr", 0) >= rate:
        return f"--min-lr {options['min_lr']} must be less than --lr {rate}"
    if options.get("t_mult", 1) < 1:
        return f"--t-mult {options['t_mult']}: must be at least 1"
    if options.get("lr_period_updates", -1) > 0:
        return None
    if not options.get("max_update"):
        return "add --lr-period-updates or --max-update, the number of updates of the first period"
    if options["max_update"] <= options.get("warmup_updates", 0):
        return f"--max-update {options['max_update']} must be more than --warmup-updates {options['warmup_updates']}"


def problem_of_tri_stage(options, rate):
    if options.get("final_lr_scale", 1) <= 0:
        return f"--final-lr-scale {options['final_lr_scale']}: must be more than 0"
    ratio = options.get("phase_ratio")
    if ratio is None:
        return None if options.get("decay_steps") else "add --decay-steps, or --phase-ratio and --max-update"
    if len(ratio) != 3 or min(ratio) < 0 or not math.isclose(sum(ratio), 1):
        return f"--phase-ratio {','.join(map(str, ratio))}: give three parts whose sum is 1, such as 0.1,0.4,0.5"
    if int(options.get("max_update", 0) * ratio[2]) < 1:
        return "--phase-ratio needs --max-update, with at least one update for the last of the three parts"


def problem_of_triangular(options, rate):
    highest = options.get("max_lr")
    if highest in (None, "???"):  # which OmegaConf calls missing
        return "add --max-lr, the highest learning rate"
    if highest <= rate:
        return f"--max-lr {highest} must be more than --lr {rate}"
    if options.get("lr_period_updates", 2) < 2:
        return f"--lr-period-updates {options['lr_period_updates']}: must be at least 2"


def problem_of_plateau(options, rate):
    if options.get("lr_shrink", 0) >= 1:
        return f"--lr-shrink {options['lr_shrink']}: must be less than 1"


def problem_of_step(options, rate):
    if options.get("lr_deacy_period", 1) < 1:
        return f"--lr-deacy-period {options['lr_deacy_period']}: must be at least 1"
    if options.get("lr_decay", 0) > 1:
        return f"--lr-decay {options['lr_decay']}: must be at most 1"
    if options.get("min_lr", 0) >= rate:
        return f"--min-lr {options['min_lr']} must be less than --lr {rate}"


def problem_of_manual(options, rate):
    for name in ("epoch2lr", "update2lr"):
        rates = read_dictionary(options, name)
        if not all(isinstance(key, str) and isinstance(value, int | float) for key, value in rates.items()):
            return f"{flag(name)} {options[name]}: give numbers in quotes and rates, such as {{'1-3': 0.1, '4': 0.01}}"


SCHEDULES = {
    "inverse_sqrt": problem_of_inverse_sqrt,
    "polynomial_decay": problem_of_polynomial_decay,
    "cosine": problem_of_cosine,
    "tri_stage": problem_of_tri_stage,
    "triangular": problem_of_triangular,
    "reduce_lr_on_plateau": problem_of_plateau,
    "step": problem_of_step,
    "manual": problem_of_manual,
}
"""For each schedule of fairseq, what is wrong with its options, if anything is."""


def read_dictionary(options, name):
    """Return an option that is written as a dictionary of Python.

    Raises:
        UserError: it cannot be read.
    """
    text = options.get(name, "{}")
    try:
        values = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        values = None
    if not isinstance(values, dict):
        raise UserError(f"{flag(name)} {text}: give a dictionary, such as {{'name': 0.1}}")
    return values


@mends("fairseq.dataclass.utils", "eval_str_list")
def name_malformed_list(eval_str_list):
    """Say that a list of numbers, such as the value of ``--lr``, is malformed.

    Why: fairseq lets Python's error through. Needed: always.
    """

    @functools.wraps(eval_str_list)
    def eval_list(x, *args, **kwargs):
        try:
            return eval_str_list(x, *args, **kwargs)
        except (SyntaxError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{x}: give values with commas between them, such as 1,2") from error

    return eval_list


def name_refused_options(option, build):
    """Return a function that builds an optimizer or a schedule, and says in one line why fairseq or torch refuses to.

    Args:
        option: the command-line option that chooses what is built.
        build: fairseq's function.
    """

    @functools.wraps(build)
    def build_or_say_why(cfg, *args, **kwargs):
        try:
            return build(cfg, *args, **kwargs)
        except (AssertionError, ImportError, NotImplementedError, ValueError) as error:
            *_, (frame, _) = walk_tb(error.__traceback__)
            if not str(error) or frame.f_globals["__name__"].partition(".")[0] not in ("fairseq", "torch"):
                raise
            raise UserError(f"{option} {getattr(cfg, '_name', '')}: {' '.join(str(error).split())}") from error

    return build_or_say_why


@mends("fairseq.optim", "build_optimizer")
def name_refused_options_of_optimizers(build_optimizer):
    """Say in one line why an optimizer cannot be built, such as for a package that is missing.

    Why: fairseq ends with a traceback. Needed: always.
    """
    return name_refused_options("--optimizer", build_optimizer)


@mends("fairseq.optim.lr_scheduler", "build_lr_scheduler")
def name_refused_options_of_schedules(build_lr_scheduler):
    """Say in one line why a schedule cannot be built, as :func:`name_refused_options_of_optimizers`.

    Needed: always.
    """
    return name_refused_options("--lr-scheduler", build_lr_scheduler)
