"""The splits of the data: patches that say before the work begins that one has no targets, or no sentences left."""

import functools
import os
from pathlib import Path

from .errors import UserError
from .hooks import mends
from .long_sentences import advice

HOW_TO_PREPARE = "prepare both sides with fairseq-preprocess, without --only-source"


@mends("fairseq.tasks.translation", "load_langpair_dataset")
def remember_missing_targets(load):
    """Keep the name of the file of targets that a split lacks, for :func:`require_targets`, and say in one line that
    its files do not fit together.

    Why: fairseq fails an assertion, without the name of the folder. Needed: always.
    """

    @functools.wraps(load)
    def load_pairs(data_path, split, src, src_dict, tgt, *args, **kwargs):
        try:
            pairs = load(data_path, split, src, src_dict, tgt, *args, **kwargs)
        except AssertionError as error:
            problem = str(error) or f"some of its sets {split}, {split}1, ... have targets, and some have none"
            raise UserError(f"data folder {data_path}, {split}: {problem}") from error
        if pairs.tgt is None:
            pairs.missing_targets = os.path.join(data_path, f"{split}.{src}-{tgt}.{tgt}")
        return pairs

    return load_pairs


def require_targets(dataset, purpose):
    """Check that a data set has targets.

    Raises:
        UserError: only the source side of its split was prepared.
    """
    from fairseq.data import BaseWrapperDataset

    while isinstance(dataset, BaseWrapperDataset):
        dataset = dataset.dataset
    file = getattr(dataset, "missing_targets", None)
    if file is not None:
        raise UserError(f"the data has no targets ({file} is missing), which {purpose} needs: {HOW_TO_PREPARE}")


@mends("fairseq.tasks.fairseq_task", "FairseqTask.build_criterion")
def remember_criterion(build_criterion):
    """Note that the task computes losses, for :func:`check_split`.

    Needed: always.
    """

    @functools.wraps(build_criterion)
    def build_criterion_of_task(self, *args, **kwargs):
        self._computes_losses = True
        return build_criterion(self, *args, **kwargs)

    return build_criterion_of_task


@mends("fairseq.tasks.fairseq_task", "FairseqTask.get_batch_iterator")
def check_split(get_batch_iterator):
    """Say that a split has no targets although they are needed, or that all its sentences are left out.

    Why: fairseq fails in the first batch, or divides by the number of sentences. Needed: always.
    """

    @functools.wraps(get_batch_iterator)
    def get_batches_of_split(self, dataset, *args, **kwargs):
        split = next((name for name, loaded in self.datasets.items() if loaded is dataset), None)
        if split is None:  # lines of fairseq-interactive
            return get_batch_iterator(self, dataset, *args, **kwargs)
        computes_losses = getattr(self, "_computes_losses", False)
        if computes_losses:
            require_targets(dataset, "a loss")
        try:
            batches = get_batch_iterator(self, dataset, *args, **kwargs)
        except AssertionError as error:
            if "should not exceed max_tokens" not in str(error):
                raise
            raise UserError(f"{error} in {split}: raise --max-tokens, or --max-tokens-valid if it is given") from error
        if batches._frozen_batches == ():
            raise UserError(why_empty(self, split, len(dataset), kwargs.get("max_positions")))
        size = len(batches.frozen_batches)
        if not computes_losses and size <= batches.shard_id < batches.num_shards:
            raise UserError(
                f"--shard-id {batches.shard_id}: the number of batches of {split} is {size}: lower --num-shards, or "
                "--max-tokens"
            )
        return batches

    return get_batches_of_split


def why_empty(task, split, size, limit):
    """Return why there is no batch of a split."""
    if not size:
        return f"{split} has no sentences: prepare it again"
    return (
        f"all {size} sentences of {split} are left out, because the maximum number of tokens is {limit}. "
        f"{advice(task, limit)}"
    )


@mends("fairseq.tasks.fairseq_task", "FairseqTask.build_generator")
def refuse_references_of_none(build_generator):
    """Say that ``--score-reference`` and ``--prefix-size`` need targets.

    Why: fairseq fails in the first batch. Needed: always.
    """

    @functools.wraps(build_generator)
    def build_generator_with_references(self, models, args, *more, **kwargs):
        for flag, is_given in {
            "--score-reference": getattr(args, "score_reference", False),
            "--prefix-size": getattr(args, "prefix_size", 0) > 0,
        }.items():
            for dataset in self.datasets.values() if is_given else ():
                require_targets(dataset, flag)
        return build_generator(self, models, args, *more, **kwargs)

    return build_generator_with_references


@mends("fairseq.trainer", "Trainer.get_train_iterator")
def check_all_shards(get_train_iterator):
    """Say before the first epoch that a later shard of the training data (``data1:data2``) lacks a file.

    Why: fairseq finds out when the epoch of that shard begins. Needed: always.
    """
    from fairseq.tasks.translation import TranslationTask
    from fairseq.utils import split_paths

    @functools.wraps(get_train_iterator)
    def get_train_iterator_of_whole_data(self, *args, **kwargs):
        if isinstance(self.task, TranslationTask):
            cfg = self.task.cfg
            for folder in split_paths(cfg.data)[1:]:
                check_shard(folder, self.cfg.dataset.train_subset, (cfg.source_lang, cfg.target_lang))
        return get_train_iterator(self, *args, **kwargs)

    return get_train_iterator_of_whole_data


def check_shard(folder, split, languages):
    """Raises UserError if a folder has no data of a language of a split."""
    for language in languages:
        if "://" not in folder and not any(Path(folder).glob(f"{split}.*-*.{language}*")):
            raise UserError(f"data folder {folder}: its {split} has no data of {language}: {HOW_TO_PREPARE}")
