"""Resuming: patches of how the trainer reads and writes checkpoints, and of where a training goes on."""

import functools
import logging
import os
import sys

from .errors import UserError
from .fingerprints import OtherWords, check_words
from .hooks import mends
from .loading import check_task

LOGGER = logging.getLogger("fairseq.trainer")

READERS = []
"""The trainer that is reading a checkpoint, and whether it resumes its training."""


@mends("fairseq.checkpoint_utils", "load_checkpoint_to_cpu")
def read_for_trainer(load):
    """Refuse a checkpoint of another task, and keep what the trainer needs, when the trainer reads a checkpoint.

    Why: fairseq continues a training with other options of the task, such as another order of the target, without a
    word. Needed: always.
    """

    @functools.wraps(load)
    def load_checkpoint_for_trainer(path, *args, **kwargs):
        state = load(path, *args, **kwargs)
        return prepare_for_training(path, state, *READERS[-1]) if READERS else state

    return load_checkpoint_for_trainer


def prepare_for_training(path, state, trainer, is_resumed):
    """Return the content of a checkpoint as the trainer needs it.

    The best score so far counts only if this training goes on to improve the same ``checkpoint_best.pt``.

    Raises:
        UserError: :func:`check_resumed_task` refuses it, or the model was trained with other dictionaries.
    """
    try:
        check_words(trainer.task, state.get("task_state", {}))
    except OtherWords as error:
        raise UserError(f"{path}: {error}") from error
    if is_resumed:
        check_resumed_task(path, state, trainer.task)
    best = os.path.join(trainer.cfg.checkpoint.save_dir, f"checkpoint_best{trainer.checkpoint_suffix}.pt")
    if not (is_in_save_dir(path, trainer) and os.path.exists(best) and has_same_score(state["cfg"], trainer.cfg)):
        for name in ("best", "patience"):
            state["extra_state"].pop(name, None)
    return StateWithWeights(state) if trainer.cfg.ema.store_ema else state


def is_in_save_dir(path, trainer):
    """Return whether a checkpoint is in the folder that this training writes to."""
    return os.path.realpath(os.path.dirname(path)) == os.path.realpath(trainer.cfg.checkpoint.save_dir)


def has_same_score(trained, cfg):
    """Return whether two trainings choose their best checkpoint by the same score.

    Args:
        trained: the configuration in the checkpoint.
        cfg: the configuration of this training.
    """
    names = ("best_checkpoint_metric", "maximize_best_checkpoint_metric")
    return (
        all(trained.checkpoint.get(name) == cfg.checkpoint[name] for name in names)
        and trained.dataset.valid_subset.split(",")[0] == cfg.dataset.valid_subset.split(",")[0]
    )


class StateWithWeights(dict):
    """The content of a checkpoint, which keeps the weights.

    Why: if --store-ema is new in a training, the trainer deletes the weights before it reads them once more for the
    averages. Needed: always.
    """

    def __delitem__(self, name):
        if name != "model":
            super().__delitem__(name)


def check_resumed_task(path, state, task):
    """Check that a training can be resumed with a task.

    A task may have a method `check_checkpoint`, which is called with the task's configuration in the checkpoint.

    Raises:
        UserError: the checkpoint was trained with another task, or with options that the task refuses to change.
    """
    trained = getattr(state.get("cfg"), "task", None)
    if trained is None:  # a checkpoint of fairseq 0.10 or older
        return
    check_task(path, trained, task)
    if hasattr(task, "check_checkpoint"):
        try:
            task.check_checkpoint(trained)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error


@mends("fairseq.trainer", "Trainer.load_checkpoint")
def check_task_and_keep_user_errors(load_checkpoint):
    """Refuse to resume the training of another task, and keep the message of a `UserError`.

    Why: fairseq continues with other options of the task, such as another order of the target, without a word. The
    trainer replaces every exception by its own. It ends in a traceback if the criterion or the optimizer differs.
    Needed: always.
    """

    @functools.wraps(load_checkpoint)
    def load_checkpoint_or_say_why(self, filename, reset_optimizer=False, reset_lr_scheduler=False, *args, **kwargs):
        READERS.append((self, not reset_optimizer))  # with a new optimizer, a new training begins from the weights
        try:
            extra_state = load_checkpoint(self, filename, reset_optimizer, reset_lr_scheduler, *args, **kwargs)
        except AssertionError as error:
            if "--reset-optimizer" not in str(error):
                raise
            raise UserError(f"{filename}: {error}") from error
        except Exception as error:
            if isinstance(error.__context__, UserError):
                raise UserError(f"{filename}: {error.__context__}") from None
            raise
        finally:
            READERS.pop()
        self.goes_on_with_lr = extra_state is not None and not reset_optimizer and not reset_lr_scheduler
        if self.goes_on_with_lr and is_in_save_dir(filename, self):
            count_updates_without_optimizer(self)
        return extra_state

    return load_checkpoint_or_say_why


def count_updates_without_optimizer(trainer):
    """Go on at the update of a checkpoint that has no optimizer (``--no-save-optimizer-state``).

    Why: fairseq begins again at update 0, so that the same command makes all of its updates once more.
    """
    history = trainer._optim_history[-1]
    if trainer.get_num_updates() < history["num_updates"]:
        trainer.lr_scheduler.load_state_dict(history["lr_scheduler_state"])
        trainer.set_num_updates(history["num_updates"])
        LOGGER.warning("the checkpoint has no state of the optimizer (--no-save-optimizer-state), which begins anew")


@mends("fairseq.checkpoint_utils", "load_checkpoint")
def go_on_where_training_stopped(load_checkpoint):
    """Go on with the learning rate, the best score and the patience that the training had, unless it has ended.

    Why: fairseq saves an epoch before it adapts the learning rate to its loss, and never does so when it resumes.
    It forgets how long the loss has not improved (--patience). In a program that trains twice, the best score of the
    first training counts in the second. It looks whether training has ended only after an update. Needed: always.
    """
    from fairseq import checkpoint_utils

    @functools.wraps(load_checkpoint)
    def load_checkpoint_and_go_on(cfg, trainer, **passthrough_args):
        from fairseq_cli.train import should_stop_early  # imports the trainer, which imports this module

        for function in (checkpoint_utils.save_checkpoint, should_stop_early):
            for name in ("best", "num_runs"):
                vars(function).pop(name, None)
        extra_state, epoch_itr = load_checkpoint(cfg, trainer, **passthrough_args)
        if extra_state is not None and trainer.goes_on_with_lr and not cfg.reset_dataloader:
            vars(should_stop_early).update(extra_state.get("patience", {}))
            position = extra_state["train_iterator"]
            if epoch_itr.epoch > position["epoch"]:  # load_state_dict has skipped the rest of an epoch
                epoch_itr = trainer.get_train_iterator(epoch_itr.epoch, load_dataset=True, **passthrough_args)
            elif position["epoch"] > 1 and not extra_state.get("has_stepped"):
                ends_epoch = position.get("iterations_in_epoch", 0) == 0
                trainer.lr_step(position["epoch"] - 1, extra_state.get("val_loss") if ends_epoch else None)
        if trainer.get_num_updates() and (end := reached_end(trainer)):
            LOGGER.info(f"the training has reached its end before, {end}: nothing is left to do")
            trainer.cfg.optimization.max_epoch = -1  # the only end that fairseq looks for before an update
        return extra_state, epoch_itr

    return load_checkpoint_and_go_on


def reached_end(trainer):
    """Return the option that has ended the training, or None."""
    from fairseq_cli.train import should_stop_early

    optimization, patience = trainer.cfg.optimization, trainer.cfg.checkpoint.patience
    if 0 < optimization.max_update <= trainer.get_num_updates():
        return f"--max-update {optimization.max_update}"
    if 0 < optimization.stop_time_hours < trainer.cumulative_training_time() / 3600:
        return f"--stop-time-hours {optimization.stop_time_hours}"
    if 0 < patience <= getattr(should_stop_early, "num_runs", 0):
        return f"--patience {patience}"
    return None


@mends("fairseq.logging.meters", "MetersDict.load_state_dict")
def start_unknown_meters_anew(load_state_dict):
    """Let the meters of a plugin's own classes start anew, when a training resumes within an epoch.

    Why: fairseq finds only its own classes, and fails with a traceback. Needed: always.
    """
    from fairseq.logging import meters

    @functools.wraps(load_state_dict)
    def load_known_meters(self, state_dict):
        load_state_dict(self, [entry for entry in state_dict if hasattr(meters, entry[2])])

    return load_known_meters


@mends("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.state_dict")
def save_bad_epochs(state_dict):
    """Save for how many epochs the loss has not improved (``--lr-patience``).

    Why: fairseq does not, so the count begins again when a training resumes. Needed: always.
    """

    @functools.wraps(state_dict)
    def state_dict_with_bad_epochs(self):
        return {**state_dict(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}

    return state_dict_with_bad_epochs


@mends("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.load_state_dict")
def load_bad_epochs(load_state_dict):
    """Load what :func:`save_bad_epochs` saves. Needed: always."""

    @functools.wraps(load_state_dict)
    def load_state_dict_with_bad_epochs(self, state):
        load_state_dict(self, state)
        self.lr_scheduler.num_bad_epochs = state.get("num_bad_epochs", 0)

    return load_state_dict_with_bad_epochs


@mends("fairseq.trainer", "Trainer.save_checkpoint")
def save_no_crash_for_user_errors(save_checkpoint):
    """Leave no ``crash.pt`` behind when training ends for a reason that the user can mend.

    Why: ``Trainer.train_step`` saves one after any error. Needed: always.
    """

    @functools.wraps(save_checkpoint)
    def save_checkpoint_unless_refused(self, filename, *args, **kwargs):
        if os.path.basename(filename) != "crash.pt" or not isinstance(sys.exc_info()[1], UserError):
            save_checkpoint(self, filename, *args, **kwargs)

    return save_checkpoint_unless_refused
