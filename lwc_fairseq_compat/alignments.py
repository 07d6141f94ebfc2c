"""Word alignments of training data (``--load-alignments``)."""

import functools
import logging

from .errors import UserError
from .hooks import mends


@mends("fairseq.tasks.translation", "TranslationTask.load_dataset")
def name_missing_alignments(load_dataset):
    """Say that ``--load-alignments`` finds no alignments of a set, or those of another number of sentences.

    Why: fairseq trains without alignments, or fails in the middle of an epoch. Needed: always.
    """
    logger = logging.getLogger("fairseq.tasks.translation")

    @functools.wraps(load_dataset)
    def load_dataset_with_alignments(self, split, *args, **kwargs):
        load_dataset(self, split, *args, **kwargs)
        pairs = self.datasets[split]
        if not self.cfg.load_alignments:
            return
        if pairs.align_dataset is None:
            reason = f"--load-alignments: no alignments of {split} in {self.cfg.data}"
            if split == self.cfg.train_subset:
                raise UserError(f"{reason}: fairseq-preprocess writes them with --align-suffix")
            logger.warning(reason)
        elif len(pairs.align_dataset) != len(pairs.src):
            raise UserError(
                f"--load-alignments: {len(pairs.align_dataset):,} alignments for the {len(pairs.src):,} sentences of "
                f"{split} in {self.cfg.data}: write the data again by fairseq-preprocess with --align-suffix"
            )

    return load_dataset_with_alignments


@mends("fairseq.trainer", "Trainer.__init__")
def learn_alignments_from_data(init):
    """Say that the criterion for alignments needs ``--load-alignments``.

    Why: fairseq trains without alignments. Needed: always.
    """
    from fairseq.criterions.label_smoothed_cross_entropy_with_alignment import (
        LabelSmoothedCrossEntropyCriterionWithAlignment,
    )

    @functools.wraps(init)
    def init_with_alignments(self, cfg, task, model, criterion, *args, **kwargs):
        learns_alignments = isinstance(criterion, LabelSmoothedCrossEntropyCriterionWithAlignment)
        if learns_alignments and not getattr(cfg.task, "load_alignments", True):
            raise UserError(
                "--criterion label_smoothed_cross_entropy_with_alignment learns from alignments: add --load-alignments"
            )
        init(self, cfg, task, model, criterion, *args, **kwargs)

    return init_with_alignments
