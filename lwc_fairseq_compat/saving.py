"""Saving: patches of when fairseq saves a checkpoint, under which names, and which older ones it removes."""

import contextlib
import functools
import itertools
import logging
import math
import os
import re
import time

from .hooks import mends

LOGGER = logging.getLogger("fairseq.checkpoint_utils")


@mends("fairseq.trainer", "Trainer.train_step")
def note_unsaved_update(train_step):
    """Note that there is something to save, for :func:`save_last_epoch`. Needed: always."""

    @functools.wraps(train_step)
    def train_step_and_note(self, *args, **kwargs):
        self.is_unsaved = True
        return train_step(self, *args, **kwargs)

    return train_step_and_note


@mends("fairseq.trainer", "Trainer.lr_step")
def save_last_epoch(lr_step):
    """Save the last epoch, even if --save-interval does not.

    Training ends after this function if no epoch is left, or if the learning rate has fallen to --stop-min-lr.
    Why: fairseq then ends without a checkpoint, and the updates since the last one are lost. Needed: always.
    """

    @functools.wraps(lr_step)
    def lr_step_and_save(self, epoch, val_loss=None):
        if 0 < self.cfg.optimization.max_epoch <= epoch:
            save_if_unsaved(self, val_loss)
        lr = lr_step(self, epoch, val_loss)
        if lr <= self.cfg.optimization.stop_min_lr:
            save_if_unsaved(self, val_loss, has_stepped=True)
        return lr

    return lr_step_and_save


def save_if_unsaved(trainer, val_loss, has_stepped=False):
    """Save a checkpoint if the trainer has made an update since the last one.

    Args:
        val_loss: the loss in the validation after this update, or None.
        has_stepped: whether the learning rate has changed at the end of this epoch. Resuming does that otherwise.
    """
    from fairseq import checkpoint_utils

    if getattr(trainer, "is_unsaved", False):
        trainer.has_stepped = has_stepped
        checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, trainer._train_iterator, val_loss)


@mends("fairseq.checkpoint_utils", "save_checkpoint")
def save_under_each_name(original):
    """Save a checkpoint under each name that the options ask for, and then remove those that are too many.

    Why: fairseq's function writes no ``checkpoint_1_200.pt`` if update 200 ends the epoch. It keeps fewer than
    --keep-best-checkpoints N, because it only saves what is as good as the worst that it has, and may give two of them
    one name. A validation loss that is not a number makes it forget the best one. It removes what it has just written
    if the folder holds higher numbers, of an earlier training. With --no-last-checkpoints, it may not save the end.
    Needed: always.
    """
    from fairseq import checkpoint_utils

    @functools.wraps(original)
    def save_checkpoint(cfg, trainer, epoch_itr, val_loss):
        trainer.is_unsaved = False
        if trainer.data_parallel_rank == 0:
            os.makedirs(cfg.save_dir, exist_ok=True)
        if val_loss is not None and not math.isnan(val_loss):
            best = max if cfg.maximize_best_checkpoint_metric else min
            previous = getattr(checkpoint_utils.save_checkpoint, "best", val_loss)
            checkpoint_utils.save_checkpoint.best = best(val_loss, previous)
        if cfg.no_save:
            return
        trainer.consolidate_optimizer()
        if trainer.should_save_checkpoint_on_current_rank:
            names = names_to_save(cfg, trainer, epoch_itr, val_loss)
            if names:
                write_under_names(cfg, trainer, epoch_itr, val_loss, names)
                remove(superfluous(cfg, trainer.checkpoint_suffix, names))
        elif trainer.always_call_state_dict_during_save_checkpoint:
            trainer.state_dict()

    return save_checkpoint


def write_under_names(cfg, trainer, epoch_itr, val_loss, names):
    """Write a checkpoint under the first name, and copy it to the others."""
    from fairseq.file_io import PathManager

    start = time.perf_counter()
    first, *others = (os.path.join(cfg.save_dir, name) for name in names)
    trainer.save_checkpoint(first, state_beside_trainer(trainer, epoch_itr, val_loss))
    if not cfg.write_checkpoints_asynchronously:
        for path in others:
            PathManager.copy(first, path, overwrite=True)
    elif others:
        LOGGER.warning(f"{first} is still being written, so it is not copied to {', '.join(others)}")
    LOGGER.info(
        f"Saved checkpoint {first} (epoch {epoch_itr.epoch} @ {trainer.get_num_updates()} updates, "
        f"score {val_loss}) (writing took {time.perf_counter() - start} seconds)"
    )


def remove(paths):
    """Remove files, and links to them, which may have gone meanwhile."""
    from fairseq.file_io import PathManager

    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path) if os.path.lexists(path) else PathManager.rm(path)


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
    if cfg.keep_best_checkpoints <= 0:
        return []
    best = best_checkpoints(cfg, suffix)
    if len(best) >= cfg.keep_best_checkpoints:
        _, worst = best[cfg.keep_best_checkpoints - 1]
        if val_loss < worst if cfg.maximize_best_checkpoint_metric else val_loss > worst:
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


def superfluous(cfg, suffix, names):
    """Return the paths of the checkpoints that are too many. Those just written, of the given names, are not."""
    from fairseq.checkpoint_utils import checkpoint_paths

    of_updates = checkpoint_paths(cfg.save_dir, rf"checkpoint_\d+_(\d+){suffix}\.pt", keep_match=True)
    if cfg.keep_interval_updates_pattern != -1:
        of_updates = [(path, update) for path, update in of_updates if update % cfg.keep_interval_updates_pattern]
    of_epochs = checkpoint_paths(cfg.save_dir, rf"checkpoint(\d+){suffix}\.pt", keep_match=True)
    paths = []
    for limit, checkpoints in (
        (cfg.keep_interval_updates, of_updates),
        (cfg.keep_last_epochs, of_epochs),
        (cfg.keep_best_checkpoints, best_checkpoints(cfg, suffix)),
    ):
        if limit > 0:
            older = [path for path, _ in checkpoints if os.path.basename(path) not in names]
            paths += older[limit - (len(checkpoints) - len(older)) :]
    return paths


def state_beside_trainer(trainer, epoch_itr, val_loss):
    """Return what a checkpoint holds of a training besides the state of its trainer."""
    from fairseq.checkpoint_utils import save_checkpoint
    from fairseq_cli.train import should_stop_early

    return {
        "train_iterator": epoch_itr.state_dict(),
        "val_loss": val_loss,
        "has_stepped": getattr(trainer, "has_stepped", False),
        **{name: value for name, value in vars(save_checkpoint).items() if name == "best"},
        "patience": {name: value for name, value in vars(should_stop_early).items() if name in ("best", "num_runs")},
    }
