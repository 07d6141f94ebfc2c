"""Optimizers: what is wrong with their options, and patches that say so in one line."""

import argparse
import ast
import dataclasses
import functools
import math

from .errors import UserError, package_that_raised
from .hooks import mends

BETAS = ("adam_betas", "adamax_betas", "lamb_betas")


def flag(name):
    """Return an option as it is given on the command line."""
    return "--" + name.replace("_", "-")


def check_optimizer_options(options):
    """Check the options of the optimizer.

    Args:
        options: the values of the options by name, without dashes. Options may be missing.

    Raises:
        UserError: a value is malformed.
    """
    for name in BETAS:
        if name in options:
            parse_betas(options[name], flag(name))
    if "adafactor_eps" in options and not is_pair(options["adafactor_eps"], math.inf):
        raise UserError(f"--adafactor-eps {options['adafactor_eps']}: give two numbers, such as '(1e-30, 1e-3)'")
    read_dictionary(options, "optimizer_overrides")


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
            if not str(error) or package_that_raised(error) not in ("fairseq", "torch"):
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


@mends("fairseq.dataclass.configs", "FairseqDataclass._get_default")
def require_numbers_without_default(get_default):
    """Say that a number without a default, such as ``--max-lr`` of the schedule ``triangular``, is missing.

    Why: fairseq's parser refuses the default, ``???``, which is no number. Needed: always.
    """

    @functools.wraps(get_default)
    def get_default_or_require(self, attribute_name):
        default = get_default(self, attribute_name)
        is_missing = default == "???" and self._get_type(attribute_name) in (int, float)
        return dataclasses.MISSING if is_missing else default

    return get_default_or_require


@mends("fairseq.trainer", "Trainer.load_checkpoint")
def name_other_optimizer(load_checkpoint):
    """Say in one line that a checkpoint was trained with another optimizer or criterion.

    Why: fairseq ends with a traceback. Needed: always.
    """

    @functools.wraps(load_checkpoint)
    def load_checkpoint_or_say_why(self, filename, *args, **kwargs):
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except AssertionError as error:
            if "--reset-optimizer" not in str(error):
                raise
            raise UserError(f"{filename}: {error}") from error

    return load_checkpoint_or_say_why


@mends("fairseq.optim.fairseq_optimizer", "FairseqOptimizer.load_state_dict")
def name_unknown_overrides(load_state_dict):
    """Say that ``--optimizer-overrides`` names a setting that the optimizer does not have.

    Why: fairseq adds it to the settings, where nothing reads it. Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_state_and_override(self, state_dict, optimizer_overrides=None):
        known = [name for name in self.param_groups[0] if name != "params"]
        for name in optimizer_overrides or ():
            if name not in known:
                raise UserError(f"--optimizer-overrides: the optimizer has no {name}, only {', '.join(known)}")
        load_state_dict(self, state_dict, optimizer_overrides)

    return load_state_and_override
