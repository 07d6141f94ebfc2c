"""Saving and resuming: patches of when a training saves a checkpoint and under which names, which older ones it
removes, and where the same command goes on."""

import contextlib
import importlib
import itertools
import logging
import math
import operator
import os
import re
import sys
import time

from .dictionaries import check_words
from .errors import UserError
from .hooks import replaces
from .loading import check_task

SAVING_LOGGER = logging.getLogger("fairseq.checkpoint_utils")
TRAINER_LOGGER = logging.getLogger("fairseq.trainer")


@replaces("fairseq.trainer", "Trainer.lr_step")
def save_last_epoch(lr_step, self, epoch, val_loss=None):
    """Save a checkpoint after the last epoch, even if --save-interval skips it.

    Training ends after this function if no epoch is left, or if the learning rate has fallen to --stop-min-lr.
    Why: fairseq then ends without a checkpoint, and the updates since the last one are lost. Needed: always.
    """
    if 0 < self.cfg.optimization.max_epoch <= epoch:
        save_if_unsaved(self, val_loss)
    lr = lr_step(self, epoch, val_loss)
    if lr <= self.cfg.optimization.stop_min_lr:
        save_if_unsaved(self, val_loss, has_stepped=True)
    return lr


def is_unsaved(trainer):
    """Return whether the trainer has made an update since the last checkpoint. While it resumes, it has not."""
    return getattr(trainer, "saved_updates", None) not in (None, trainer.get_num_updates())


def save_if_unsaved(trainer, val_loss, has_stepped=False):
    """Save a checkpoint if the trainer has made an update since the last one.

    The checkpoint records whether the scheduler has already stepped at the end of this epoch. If not, resuming makes
    that step.
    """
    from fairseq.checkpoint_utils import save_checkpoint

    if is_unsaved(trainer):
        trainer.has_stepped = has_stepped
        save_checkpoint(trainer.cfg.checkpoint, trainer, trainer._train_iterator, val_loss)


@replaces("fairseq.utils", "move_to_cpu")
def save_shared_weights_once(move_to_cpu, sample):
    """Let a checkpoint hold a weight with several names once.

    Why: of weights on a GPU or in half precision, fairseq makes a copy for each name. Needed: always.
    """
    from fairseq.utils import apply_to_sample

    copies = {}

    def copied_once(tensor):
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if place not in copies or not tensor.data_ptr():  # empty, or of a class that does not tell its place
            (copies[place],) = move_to_cpu([tensor])
        return copies[place]

    return apply_to_sample(copied_once, sample)


@replaces("fairseq.checkpoint_utils", "save_checkpoint")
def save_under_each_name(_, cfg, trainer, epoch_itr, val_loss):
    """Save a checkpoint under each name that the options ask for, and then remove those that are too many.

    Why: fairseq's function writes no ``checkpoint_1_200.pt`` if update 200 ends the epoch. It keeps fewer than
    --keep-best-checkpoints N, because it only saves what is as good as the worst that it has, and may give two of them
    one name. A validation loss that is not a number makes it forget the best score. It removes the checkpoint that it
    has just written if the folder holds checkpoints of an earlier training with higher numbers. With
    --no-last-checkpoints, it may not save the final state.
    Needed: always.
    """
    from fairseq.checkpoint_utils import save_checkpoint
    from fairseq.file_io import PathManager

    trainer.saved_updates = trainer.get_num_updates()
    if trainer.data_parallel_rank == 0:
        os.makedirs(cfg.save_dir, exist_ok=True)
    if val_loss is not None and not math.isnan(val_loss):
        best = max if cfg.maximize_best_checkpoint_metric else min
        save_checkpoint.best = best(val_loss, getattr(save_checkpoint, "best", val_loss))
    if cfg.no_save:
        return
    trainer.consolidate_optimizer()
    if trainer.should_save_checkpoint_on_current_rank:
        names = names_to_save(cfg, trainer, epoch_itr, val_loss)
        if names:
            write_under_names(cfg, trainer, epoch_itr, val_loss, names)
            for path in superfluous(cfg, trainer.checkpoint_suffix, names):
                with contextlib.suppress(FileNotFoundError):  # another process may have removed it
                    PathManager.rm(path)
    elif trainer.always_call_state_dict_during_save_checkpoint:
        trainer.state_dict()


def names_to_save(cfg, trainer, epoch_itr, val_loss):
    """Return the names of the files for the present state of a training."""
    from fairseq.checkpoint_utils import save_checkpoint

    suffix, epoch, updates = trainer.checkpoint_suffix, epoch_itr.epoch, trainer.get_num_updates()
    of_epoch, of_update = f"checkpoint{epoch}{suffix}.pt", f"checkpoint_{epoch}_{updates}{suffix}.pt"
    ends_epoch = epoch_itr.end_of_epoch()
    names = []
    if ends_epoch and not cfg.no_epoch_checkpoints and epoch % cfg.save_interval == 0:
        names.append(of_epoch)
    if cfg.save_interval_updates > 0 and updates % cfg.save_interval_updates == 0:
        names.append(of_update)
    if val_loss is not None and math.isfinite(val_loss):
        if val_loss == save_checkpoint.best:
            names.append(f"checkpoint_best{suffix}.pt")
        names += names_among_best(cfg, suffix, val_loss)
    if not cfg.no_last_checkpoints:
        names.append(f"checkpoint_last{suffix}.pt")
    if not names and not cfg.no_epoch_checkpoints:  # the training ends here
        names.append(of_epoch if ends_epoch else of_update)
    return names


def names_among_best(cfg, suffix, val_loss):
    """Return a list with the name of a checkpoint if it is one of the best N, and an empty list otherwise."""
    best = best_checkpoints(cfg, suffix)
    is_better = operator.gt if cfg.maximize_best_checkpoint_metric else operator.lt
    if sum(is_better(score, val_loss) for _, score in best) >= cfg.keep_best_checkpoints:
        return []
    taken = {os.path.basename(path) for path, _ in best}
    start = f"checkpoint.best_{cfg.best_checkpoint_metric}_{val_loss:.3f}"
    names = (f"{start}{digit}{suffix}.pt" for digit in itertools.count())  # several checkpoints may have one score
    return [next(name for name in names if name not in taken)]


def best_checkpoints(cfg, suffix):
    """Return the paths and scores of the checkpoints that --keep-best-checkpoints has saved, the best one first."""
    from fairseq.checkpoint_utils import checkpoint_paths

    pattern = rf"checkpoint\.best_{re.escape(cfg.best_checkpoint_metric)}_(-?\d+\.?\d*){suffix}\.pt"
    best = checkpoint_paths(cfg.save_dir, pattern, keep_match=True)
    return best if cfg.maximize_best_checkpoint_metric else best[::-1]


def write_under_names(cfg, trainer, epoch_itr, val_loss, names):
    """Write a checkpoint under the first name, and copy it to the others."""
    from fairseq.checkpoint_utils import save_checkpoint
    from fairseq.file_io import PathManager

    start = time.perf_counter()
    first, *others = (os.path.join(cfg.save_dir, name) for name in names)
    beside_trainer = {
        "train_iterator": epoch_itr.state_dict(),
        "val_loss": val_loss,
        "has_stepped": getattr(trainer, "has_stepped", False),
        **{name: value for name, value in vars(save_checkpoint).items() if name == "best"},
        "patience": {name: value for name, value in vars(patience()).items() if name in ("best", "num_runs")},
    }
    trainer.save_checkpoint(first, beside_trainer)
    if not cfg.write_checkpoints_asynchronously:
        for path in others:
            PathManager.copy(first, path, overwrite=True)
    elif others:
        SAVING_LOGGER.warning(f"{first} is still being written, so it is not copied to {', '.join(others)}")
    SAVING_LOGGER.info(
        f"Saved checkpoint {first} (epoch {epoch_itr.epoch} @ {trainer.get_num_updates()} updates, "
        f"score {val_loss}) (writing took {time.perf_counter() - start} seconds)"
    )


def patience():
    """Return fairseq's function ``should_stop_early``, whose attributes say how long the loss has not improved. With
    ``python -m fairseq_cli.train``, it is the one of ``__main__``."""
    running = sys.modules["__main__"]
    if getattr(running.__spec__, "name", None) != "fairseq_cli.train":
        running = importlib.import_module("fairseq_cli.train")
    return running.should_stop_early


def superfluous(cfg, suffix, names):
    """Return the paths of the checkpoints to remove. The checkpoints just written, `names`, are never among them."""
    from fairseq.checkpoint_utils import checkpoint_paths

    of_updates = checkpoint_paths(cfg.save_dir, rf"checkpoint_\d+_(\d+){suffix}\.pt", keep_match=True)
    if cfg.keep_interval_updates_pattern != -1:
        of_updates = [(path, update) for path, update in of_updates if update % cfg.keep_interval_updates_pattern]
    of_epochs = checkpoint_paths(cfg.save_dir, rf"checkpoint(\d+){suffix}\.pt", keep_match=True)
    limits = (cfg.keep_interval_updates, cfg.keep_last_epochs, cfg.keep_best_checkpoints)
    paths = []
    for limit, checkpoints in zip(limits, (of_updates, of_epochs, best_checkpoints(cfg, suffix)), strict=True):
        if limit > 0:
            written_first = sorted(checkpoints, key=lambda entry: os.path.basename(entry[0]) not in names)
            paths += [path for path, _ in written_first[limit:]]
    return paths


@replaces("fairseq.trainer", "Trainer.save_checkpoint")
def save_no_crash_for_user_errors(save_checkpoint, self, filename, *args, **kwargs):
    """Write no ``crash.pt`` when a `UserError` ends training.

    Why: ``Trainer.train_step`` writes this file after most errors. Needed: always.
    """
    if os.path.basename(filename) != "crash.pt" or not isinstance(sys.exc_info()[1], UserError):
        save_checkpoint(self, filename, *args, **kwargs)


READERS: list[tuple] = []
"""The trainer that is reading a checkpoint, and whether it resumes its training."""


@replaces("fairseq.trainer", "Trainer.load_checkpoint")
def load_or_say_why(load_checkpoint, self, filename, reset_optimizer=False, reset_lr_scheduler=False, *args, **kwargs):
    """Keep the message of a `UserError`, and go on at the update of a checkpoint that has no optimizer.

    Why: the trainer replaces every exception by its own. It ends in a traceback if the criterion or the optimizer
    differs. After --no-save-optimizer-state it counts from update 0 again, so the same command repeats all updates.
    Needed: always.
    """
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
        history = self._optim_history[-1]
        if self.get_num_updates() < history["num_updates"]:
            self.lr_scheduler.load_state_dict(history["lr_scheduler_state"])
            self.set_num_updates(history["num_updates"])
            TRAINER_LOGGER.warning(
                "the checkpoint has no state of the optimizer (--no-save-optimizer-state), which begins anew"
            )
    return extra_state


@replaces("fairseq.checkpoint_utils", "load_checkpoint_to_cpu")
def read_for_trainer(load, path, *args, **kwargs):
    """Refuse to resume from a checkpoint of another task or of other dictionaries, keeping the weights for --store-ema.

    A task may have a method `check_checkpoint`, which is called with the task's configuration in the checkpoint.
    The best score so far counts only if this training goes on to improve the same ``checkpoint_best.pt``.
    Why: fairseq gives no message when it continues a training with other options of the task, such as another order of
    the target. Needed: always.
    """
    state = load(path, *args, **kwargs)
    if not READERS:
        return state
    trainer, is_resumed = READERS[-1]
    task, trained, cfg = trainer.task, state["cfg"], trainer.cfg
    if is_resumed:
        check_task(path, trained.task, task)
    try:
        check_words(task, state.get("task_state", {}))
        if is_resumed and hasattr(task, "check_checkpoint"):
            task.check_checkpoint(trained.task)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    best = os.path.join(cfg.checkpoint.save_dir, f"checkpoint_best{trainer.checkpoint_suffix}.pt")
    if not (is_in_save_dir(path, trainer) and os.path.exists(best) and score_of(trained) == score_of(cfg)):
        for name in ("best", "patience"):
            state["extra_state"].pop(name, None)
    if cfg.ema.store_ema:
        # If --store-ema is new in a training, the averages begin with the weights. The trainer deletes state["model"]
        # before it would take them from there.
        state["extra_state"].setdefault("ema", state["model"])
    return state


def is_in_save_dir(path, trainer):
    """Return whether a checkpoint is in the folder that this training writes to."""
    return os.path.realpath(os.path.dirname(path)) == os.path.realpath(trainer.cfg.checkpoint.save_dir)


def score_of(cfg):
    """Return the options that say by which score a training chooses its best checkpoint."""
    names = ("best_checkpoint_metric", "maximize_best_checkpoint_metric")
    return *map(cfg.checkpoint.get, names), cfg.dataset.valid_subset.split(",")[0]


@replaces("fairseq.checkpoint_utils", "load_checkpoint")
def go_on_where_training_stopped(load_checkpoint, cfg, trainer, **passthrough_args):
    """Go on with the learning rate, the best score and the patience of the stopped training, unless that has ended.

    Why: fairseq saves an epoch before it adapts the learning rate to the loss of that epoch, and does not make up for
    this when it resumes. It forgets how long the loss has not improved (--patience). In a program that trains twice,
    the best score of the first training counts in the second. Before the first update, fairseq checks only --max-epoch
    and --stop-min-lr, and none of the other limits. Needed: always.
    """
    from fairseq.checkpoint_utils import save_checkpoint

    for function in (save_checkpoint, patience()):
        for name in ("best", "num_runs"):
            vars(function).pop(name, None)
    extra_state, epoch_itr = load_checkpoint(cfg, trainer, **passthrough_args)
    if extra_state is not None and not cfg.reset_dataloader:
        position = extra_state["train_iterator"]
        has_skipped = epoch_itr.epoch > position["epoch"]  # load_state_dict has skipped the rest of an epoch
        if has_skipped:
            epoch_itr = trainer.get_train_iterator(epoch_itr.epoch, load_dataset=True, **passthrough_args)
        if trainer.goes_on_with_lr:
            vars(patience()).update(extra_state.get("patience", {}))
            if not has_skipped and position["epoch"] > 1 and not extra_state.get("has_stepped"):
                ends_epoch = position.get("iterations_in_epoch", 0) == 0
                trainer.lr_step(position["epoch"] - 1, extra_state.get("val_loss") if ends_epoch else None)
    trainer.saved_updates = trainer.get_num_updates()
    if trainer.saved_updates and (end := reached_end(trainer)):
        TRAINER_LOGGER.info(f"the training has reached its end before, {end}: nothing is left to do")
        trainer.cfg.optimization.max_epoch = -1  # fairseq checks this limit before an update
    return extra_state, epoch_itr


def reached_end(trainer):
    """Return the option that has ended the training, or None."""
    optimization, limit = trainer.cfg.optimization, trainer.cfg.checkpoint.patience
    if 0 < optimization.max_update <= trainer.get_num_updates():
        return f"--max-update {optimization.max_update}"
    if 0 < optimization.stop_time_hours < trainer.cumulative_training_time() / 3600:
        return f"--stop-time-hours {optimization.stop_time_hours}"
    if 0 < limit <= getattr(patience(), "num_runs", 0):
        return f"--patience {limit}"
    return None


@replaces("fairseq.logging.meters", "MetersDict.load_state_dict")
def start_unknown_meters_anew(load_state_dict, self, state_dict):
    """Let the meters of a plugin's own classes start anew, when a training resumes within an epoch.

    Why: fairseq finds only its own classes, and fails with a traceback. Needed: always.
    """
    from fairseq.logging import meters

    load_state_dict(self, [entry for entry in state_dict if hasattr(meters, entry[2])])


@replaces("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.state_dict")
def save_bad_epochs(state_dict, self):
    """Save for how many epochs the loss has not improved (``--lr-patience``).

    Why: fairseq does not, so the count begins again when a training resumes. Needed: always.
    """
    return {**state_dict(self), "num_bad_epochs": self.lr_scheduler.num_bad_epochs}


@replaces("fairseq.optim.lr_scheduler.reduce_lr_on_plateau", "ReduceLROnPlateauLRSchedule.load_state_dict")
def load_bad_epochs(load_state_dict, self, state):
    """Load what :func:`save_bad_epochs` saves. Needed: always."""
    load_state_dict(self, state)
    self.lr_scheduler.num_bad_epochs = state.get("num_bad_epochs", 0)
