"""Resuming: patches of how the trainer reads and writes checkpoints."""

import functools
import os
import sys

from .errors import UserError
from .fingerprints import OtherWords, check_words
from .hooks import mends
from .loading import check_task

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

    Raises:
        UserError: :func:`check_resumed_task` refuses it, or the model was trained with other dictionaries.
    """
    try:
        check_words(trainer.task, state.get("task_state", {}))
    except OtherWords as error:
        raise UserError(f"{path}: {error}") from error
    if is_resumed:
        check_resumed_task(path, state, trainer.task)
    return StateWithWeights(state) if trainer.cfg.ema.store_ema else state


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
    trainer replaces every exception by its own. Needed: always.
    """

    @functools.wraps(load_checkpoint)
    def load_checkpoint_or_say_why(self, filename, reset_optimizer=False, *args, **kwargs):
        READERS.append((self, not reset_optimizer))  # with a new optimizer, a new training begins from the weights
        try:
            return load_checkpoint(self, filename, reset_optimizer, *args, **kwargs)
        except Exception as error:
            if isinstance(error.__context__, UserError):
                raise UserError(f"{filename}: {error.__context__}") from None
            raise
        finally:
            READERS.pop()

    return load_checkpoint_or_say_why


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
