"""Validation in training: patches that try it before the first update, and that save before a failure ends training."""

import functools
import logging
import os
from traceback import walk_tb

from .errors import UserError, package_that_raised
from .hooks import replaces

COMMAND = os.path.join("fairseq_cli", "train.py")


@replaces("fairseq.checkpoint_utils", "load_checkpoint")
def try_validation_before_training(load_checkpoint, cfg, trainer, **settings):
    """Try before the first update what validation does after it: choose batches, translate, give the metric.

    Why: sentences that are too long, a validation set without targets, options of the search in ``--eval-bleu-args``,
    and a ``--best-checkpoint-metric`` that nothing gives end the training only after its first epoch. Needed: always.
    """
    extra_state, epoch_batches = load_checkpoint(cfg, trainer, **settings)
    if not trainer.cfg.dataset.disable_validation:
        batch_of_training = trainer._dummy_batch  # which each iterator of the trainer replaces
        for subset in trainer.cfg.dataset.valid_subset.split(","):
            try_validation(trainer, subset, epoch_batches.next_epoch_idx)
        trainer.reset_dummy_batch(batch_of_training)
    return extra_state, epoch_batches


def try_validation(trainer, subset, epoch):
    """Validate on one batch after another until the metric is there.

    Every validation gives the loss. If the metric is the loss and BLEU is not computed, only choose the batches.

    Raises:
        UserError: validation of this set would fail.
    """
    batches = trainer.get_valid_iterator(subset)
    metric = trainer.cfg.checkpoint.best_checkpoint_metric
    with_bleu = getattr(getattr(trainer.task, "cfg", None), "eval_bleu", False)
    if metric == "loss" and not with_bleu:
        return
    given = {"num_updates"}
    trainer.begin_valid_epoch(epoch)
    for batch in first_sentence_and_batches(batches, with_bleu):
        try:
            given |= metrics_of(trainer, batch)
        except (AssertionError, ValueError) as error:  # by which a search refuses its options
            is_check = isinstance(error, AssertionError) or package_that_raised(error) == "fairseq"
            if not (with_bleu and str(error) and is_check):
                raise
            raise UserError(f"--eval-bleu-args {trainer.task.cfg.eval_bleu_args}: {error}") from error
        if metric in given:
            return
    if not hasattr(trainer.task, "post_validate"):  # which may add the metric
        raise metric_not_given(metric, subset, given)


def first_sentence_and_batches(batches, with_bleu):
    """Yield all batches of a validation set, and before them a batch of one sentence if each batch is translated, which
    takes long."""
    dataset = batches.dataset
    if with_bleu and getattr(dataset, "supports_fetch_outside_dataloader", True):
        yield batches.collate_fn([dataset[batches.frozen_batches[0][0]]])
    yield from batches.next_epoch_itr(shuffle=False, set_dataset_epoch=False)


def metrics_of(trainer, batch):
    """Return the names of the metrics that validation on a batch gives, and forget their values."""
    from fairseq.logging import metrics

    values = metrics._aggregators.pop("valid", None)  # to which `valid_step` adds; a checkpoint contains it
    try:
        with metrics.aggregate(new_root=True) as given:
            trainer.valid_step(batch)
    finally:
        metrics._aggregators.pop("valid", None)
        if values is not None:
            metrics._aggregators["valid"] = values
    return set(given.get_smoothed_values())


def metric_not_given(metric, subset, given):
    return UserError(
        f"--best-checkpoint-metric {metric}: validation on {subset} does not give it, only {', '.join(sorted(given))}"
    )


@replaces("fairseq.distributed.utils", "call_main")
def save_before_failed_validation_ends_training(call_main, cfg, main, **kwargs):
    """Save the training when its validation fails.

    Why: fairseq validates after an epoch, and saves afterwards. The epoch would be lost. Needed: always.
    """
    return call_main(cfg, functools.partial(main_that_saves, main), **kwargs)


def main_that_saves(main, cfg, **kwargs):
    """Call the function of a command, and save if it is a training whose validation fails."""
    try:
        return main(cfg, **kwargs)
    except Exception as error:
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_code.co_name == "validate" and frame.f_code.co_filename.endswith(COMMAND):
                save_unvalidated(frame.f_locals["trainer"], frame.f_locals["epoch_itr"])
                metric = cfg.checkpoint.best_checkpoint_metric
                if isinstance(error, KeyError) and error.args == (metric,):
                    raise metric_not_given(metric, frame.f_locals["subset"], frame.f_locals["stats"]) from error
        raise


def save_unvalidated(trainer, epoch_batches):
    """Save the training as it is, without a result of validation.

    A training whose processes share the state of the optimizer is not saved: they would wait for each other, but maybe
    only one of them has failed.
    """
    from fairseq import checkpoint_utils

    if trainer.is_fsdp or trainer.cfg.distributed_training.zero_sharding != "none":
        return
    checkpoint = trainer.cfg.checkpoint
    checkpoint_utils.save_checkpoint(checkpoint, trainer, epoch_batches, None)
    if not (checkpoint.no_save or checkpoint.no_last_checkpoints):
        logging.getLogger("fairseq.trainer").error(
            f"validation after update {trainer.get_num_updates()} failed; the training is saved, and the same command "
            "goes on there"
        )
