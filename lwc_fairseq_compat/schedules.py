"""Schedules of the learning rate: what each of them needs, and patches of them."""

import functools
import math

from .errors import UserError
from .hooks import mends
from .optimizers import flag, read_dictionary

ONE_RATE = ("inverse_sqrt", "cosine", "tri_stage", "triangular", "reduce_lr_on_plateau", "step", "manual")
"""The schedules that use only the first value of --lr."""


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


@mends("fairseq.optim.lr_scheduler.tri_stage_lr_scheduler", "TriStageLRSchedule.__init__")
def accept_rounded_ratio(init):
    """Accept a ``--phase-ratio`` whose sum is 1 up to rounding, such as 0.3,0.6,0.1.

    Why: fairseq compares the sum in binary numbers with 1. Needed: always.
    """

    @functools.wraps(init)
    def init_with_rounded_ratio(self, cfg, optimizer):
        if cfg.phase_ratio is not None:
            first, second, _ = cfg.phase_ratio
            cfg.phase_ratio = (first, second, 1 - (first + second))
        init(self, cfg, optimizer)

    return init_with_rounded_ratio


@mends("fairseq.optim.lr_scheduler.fairseq_lr_scheduler", "FairseqLRScheduler.load_state_dict")
@mends("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.load_state_dict")
def name_other_schedule(load_state_dict):
    """Say that a checkpoint was trained with another schedule, whose state is another one.

    Why: fairseq ends with a traceback. Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_state_of_same_schedule(self, state_dict):
        try:
            load_state_dict(self, state_dict)
        except KeyError as error:
            raise UserError(
                "the checkpoint was trained with another --lr-scheduler: give that one, or add --reset-lr-scheduler"
            ) from error

    return load_state_of_same_schedule
