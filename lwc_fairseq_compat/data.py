"""Data: patches that say what is wrong with a folder of data, a split of it, or the length of a sentence."""

import logging
import os
import re
import sys
from pathlib import Path

from .errors import UserError
from .hooks import mends, replaces

logger = logging.getLogger(__name__)

HOW_TO_PREPARE = "prepare both sides with fairseq-preprocess, without --only-source"
TRANSLATION_MODELS = (
    "of translation models fairseq-validate gives the perplexity, and fairseq-generate --score-reference the score of "
    "each reference"
)


@replaces("fairseq.data.data_utils", "infer_language_pair")
def name_missing_pair(infer, path):
    """Say that the data folder is missing, or that no file in it identifies the language pair.

    Why: fairseq fails with a traceback. Needed: always.
    """
    hint = "give the folder that fairseq-preprocess wrote (its --destdir)"
    try:
        pair = infer(path)
    except OSError as error:
        raise UserError(f"data folder {path}: {error.strerror}; {hint}") from error
    if None in pair:
        raise UserError(f"data folder {path}: no data of a language pair in it; {hint}")
    return pair


@replaces("fairseq.tasks.translation", "load_langpair_dataset")
def load_pairs(load, data_path, split, src, src_dict, tgt, *args, dataset_impl=None, upsample_primary=1, **kwargs):
    """Say why a split cannot be loaded, and combine training sets (``train``, ``train1``, …) without
    ``--upsample-primary``.

    A message says which splits there are if one is missing, that a split is raw text instead of binary or the reverse,
    or that its files do not fit together. If a split lacks targets, :func:`require_targets` names their file.

    Why: fairseq fails with a traceback. The default of ``--upsample-primary`` is -1, with which lengths are repeated -1
    times. This is an error; older versions of numpy return no data. Needed: always.
    """
    settings = {"dataset_impl": dataset_impl, "upsample_primary": max(1, upsample_primary), **kwargs}
    try:
        pairs = load(data_path, split, src, src_dict, tgt, *args, **settings)
    except AssertionError as error:
        problem = str(error) or f"some of its sets {split}, {split}1, ... have targets, and some have none"
        raise UserError(f"data folder {data_path}, {split}: {problem}") from error
    except FileNotFoundError as error:
        raise UserError(f"data folder {data_path}: {why_missing(data_path, split, dataset_impl)}") from error
    if pairs.tgt is None:
        pairs.missing_targets = os.path.join(data_path, f"{split}.{src}-{tgt}.{tgt}")
    return pairs


def why_missing(folder, split, dataset_impl):
    """Return why a split in a data folder cannot be loaded."""
    files = [file.name.split(".") for file in Path(folder).glob("*.*-*.*")]
    binary, raw = {parts[0] for parts in files if parts[-1] == "idx"}, {parts[0] for parts in files if len(parts) == 3}
    if dataset_impl == "raw" and split in binary:
        return f"its {split} is binary: leave out --dataset-impl raw"
    if dataset_impl != "raw" and split in raw - binary:
        return f"its {split} is raw text: add --dataset-impl raw"
    if split in binary:
        return f"its {split} has another format than --dataset-impl {dataset_impl}: leave the option out"
    hint = f": fairseq-preprocess writes it from --{split}pref" if split in ("train", "valid", "test") else ""
    return f"no {split} in it, only {', '.join(sorted(binary | raw)) or 'none'}{hint}"


def require_targets(dataset, purpose):
    """Raises UserError if a data set has no targets, because only the source side of its split was prepared."""
    from fairseq.data import BaseWrapperDataset

    while isinstance(dataset, BaseWrapperDataset):
        dataset = dataset.dataset
    file = getattr(dataset, "missing_targets", None)
    if file is not None:
        raise UserError(f"the data has no targets ({file} is missing), which {purpose} needs: {HOW_TO_PREPARE}")


@replaces("fairseq.tasks.translation", "TranslationTask.load_dataset")
def name_missing_alignments(load_dataset, self, split, *args, **kwargs):
    """Say that ``--load-alignments`` finds no alignments of a set, or not one for each sentence.

    Why: fairseq trains without alignments, or fails in the middle of an epoch. Needed: always.
    """
    load_dataset(self, split, *args, **kwargs)
    pairs = self.datasets[split]
    if not self.cfg.load_alignments:
        return
    if pairs.align_dataset is None:
        reason = f"--load-alignments: no alignments of {split} in {self.cfg.data}"
        if split == self.cfg.train_subset:
            raise UserError(f"{reason}: fairseq-preprocess writes them with --align-suffix")
        logging.getLogger("fairseq.tasks.translation").warning(reason)
    elif len(pairs.align_dataset) != len(pairs.src):
        raise UserError(
            f"--load-alignments: {len(pairs.align_dataset):,} alignments for the {len(pairs.src):,} sentences of "
            f"{split} in {self.cfg.data}: write the data again by fairseq-preprocess with --align-suffix"
        )


@replaces("fairseq.trainer", "Trainer.get_train_iterator")
def check_training_data(get_train_iterator, self, *args, **kwargs):
    """Say before the first epoch that a later shard of the training data (``data1:data2``) lacks a file, or that the
    criterion for alignments needs ``--load-alignments``.

    Why: fairseq notices the missing file only when the epoch of that shard begins. Without the option, that criterion
    trains without alignments. Needed: always.
    """
    from fairseq.criterions import label_smoothed_cross_entropy_with_alignment as with_alignment
    from fairseq.tasks.translation import TranslationTask
    from fairseq.utils import split_paths

    cfg = self.task.cfg  # which has the languages, also if they are not given
    criterion = with_alignment.LabelSmoothedCrossEntropyCriterionWithAlignment
    if isinstance(self._criterion, criterion) and not getattr(self.cfg.task, "load_alignments", True):
        raise UserError(
            "--criterion label_smoothed_cross_entropy_with_alignment learns from alignments: add --load-alignments"
        )
    for folder in split_paths(cfg.data)[1:] if isinstance(self.task, TranslationTask) else ():
        split = self.cfg.dataset.train_subset
        for language in (cfg.source_lang, cfg.target_lang):
            if "://" not in folder and not any(Path(folder).glob(f"{split}.*-*.{language}*")):
                raise UserError(f"data folder {folder}: its {split} has no data of {language}: {HOW_TO_PREPARE}")
    return get_train_iterator(self, *args, **kwargs)


@replaces("fairseq.criterions", "build_criterion")
def remember_criterion(build_criterion, cfg, task, *args, **kwargs):
    """Note that the task computes losses. Why: :func:`check_split` and tasks of plugins ask. Needed: always."""
    task.computes_losses = True
    return build_criterion(cfg, task, *args, **kwargs)


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.get_batch_iterator")
def check_split(get_batch_iterator, self, dataset, *args, **kwargs):
    """Say that a split has no targets although they are needed, or that all its sentences are left out.

    Why: fairseq fails in the first batch, or divides by the number of sentences. Needed: always.
    """
    split = next((name for name, loaded in self.datasets.items() if loaded is dataset), None)
    if split is None:  # lines of fairseq-interactive
        return get_batch_iterator(self, dataset, *args, **kwargs)
    computes_losses = getattr(self, "computes_losses", False)
    if computes_losses:
        require_targets(dataset, "a loss")
    try:
        batches = get_batch_iterator(self, dataset, *args, **kwargs)
    except AssertionError as error:
        if "should not exceed max_tokens" not in str(error):
            raise
        raise UserError(f"{error} in {split}: raise --max-tokens, or --max-tokens-valid if it is given") from error
    if batches._frozen_batches == () and not len(dataset):
        raise UserError(f"{split} has no sentences: prepare it again")
    if batches._frozen_batches == ():
        limit = kwargs.get("max_positions")
        raise UserError(
            f"all {len(dataset)} sentences of {split} are left out, because the maximum number of tokens is "
            f"{limit}. {advice(self, limit)}"
        )
    size = len(batches.frozen_batches)
    if not computes_losses and size <= batches.shard_id < batches.num_shards:
        raise UserError(
            f"--shard-id {batches.shard_id}: the number of batches of {split} is {size}: lower --num-shards, or "
            "--max-tokens"
        )
    return batches


@replaces("fairseq.data.data_utils", "_find_extra_valid_paths")
def find_names_of_validation_sets(find, path):
    """Return the names of further validation sets, such as ``valid1``, without the languages of their files.

    Why: fairseq compares names such as ``valid1.de-en.de`` with ``--valid-subset valid,valid1``, and so refuses sets
    that this option names. Needed: always.
    """
    return {name.partition(".")[0] for name in find(path)}


@replaces("fairseq.data.data_utils", "raise_if_valid_subsets_unintentionally_ignored")
def refuse_ignored_validation_sets(check, train_cfg):
    """Say in one line that further validation sets would be ignored.

    Why: fairseq fails with a traceback. Needed: always.
    """
    try:
        check(train_cfg)
    except ValueError as error:
        raise UserError(f"{error} Or name all sets, as in --valid-subset valid,valid1") from error
    except FileNotFoundError as error:
        raise UserError(f"data folder {error.filename}: {error.strerror}") from error


@mends("fairseq.tasks.translation")
def refuse_scores_of_a_language_model(module):
    """Say that ``fairseq-eval-lm`` is not for translation.

    Why: the command calls a method that the task lacks. Mends: ``TranslationTask``. Needed: always.
    """

    def eval_lm_dataloader(self, *args, **kwargs):
        raise UserError(f"fairseq-eval-lm is for language models; {TRANSLATION_MODELS}")

    module.TranslationTask.eval_lm_dataloader = eval_lm_dataloader


@replaces("fairseq.tasks.fairseq_task", "FairseqTask.filter_indices_by_size")
def truncate_text_and_name_invalid_size(
    filter_indices_by_size, self, indices, dataset, max_positions=None, ignore_invalid_inputs=False
):
    """Truncate sentences that are given as text, and say in one line which sentence of a data set is too long.

    Why: fairseq fails with a traceback, and the lines that ``fairseq-interactive`` has read are lost. Needed: always.
    """
    from fairseq.data import LanguagePairDataset

    is_text = isinstance(dataset, LanguagePairDataset) and dataset.tgt is None and isinstance(dataset.src, list)
    longest = max_positions[0] if isinstance(max_positions, (tuple, list)) else max_positions
    if is_text and longest is not None:
        dataset.src = [truncate_source(tokens, longest) for tokens in dataset.src]
        dataset.src_sizes[:] = [len(tokens) for tokens in dataset.src]
    try:
        return filter_indices_by_size(self, indices, dataset, max_positions, ignore_invalid_inputs)
    except Exception as error:
        if "is invalid" not in str(error):
            raise
        message = re.sub(r"np\.int\d+\((\d+)\)", r"\1", str(error))
        raise UserError(f"{message}. {advice(self, max_positions)}") from error


def truncate_source(tokens, longest):
    """Return at most `longest` tokens of a source (n,): its first tokens and its end symbol. Warn if it has more."""
    if len(tokens) <= longest:
        return tokens
    logger.warning(
        f"a source has {len(tokens)} tokens, more than --max-source-positions or the models allow: only the first "
        f"{longest} are translated"
    )
    return tokens[[*range(longest - 1), -1]]


def advice(task, limits):
    """Return what to do about sentences that exceed the limits of source and target, besides leaving them out."""
    command = os.path.basename(sys.argv[0])
    options = "--max-source-positions and --max-target-positions"
    is_of_model = command == "fairseq-validate"
    if command == "fairseq-eval-lm":
        return f"To score longer lines in parts, add --tokens-per-sample {limits}"
    if not isinstance(limits, tuple):
        return "To read longer sentences, raise --max-positions or --tokens-per-sample, whichever the model has"
    if command not in ("fairseq-train", "fairseq-validate") and task.max_positions() is not None:
        is_of_model = any(limit < other for limit, other in zip(limits, task.max_positions(), strict=True))
    if is_of_model:
        return (
            f"The limits are those of the model, which was trained with these {options}; fairseq-interactive truncates "
            "a source that is too long"
        )
    return f"To read longer sentences, raise {options}"


@replaces("fairseq.data.indexed_dataset", "IndexedCachedDataset.__getitem__")
def read_sentences_outside_the_cache(getitem, self, i):
    """Let training read data of ``fairseq-preprocess --dataset-impl lazy`` or ``cached``.

    Why: training first looks at a batch, before it reads the sentences of an epoch into the cache, and ends in a
    ``KeyError``. Needed: always.
    """
    from fairseq.data.indexed_dataset import IndexedDataset

    return getitem(self, i) if i in self.cache_index else IndexedDataset.__getitem__(self, i)


BINARY = {"mmap": "mmap", "huffman": "huffman", "cached": "cached", "lazy": "cached"}
"""Values of ``--dataset-impl``, with the format that fairseq recognizes in their files."""


@replaces("fairseq.data.indexed_dataset", "make_dataset")
def name_other_format(make_dataset, path, impl, *args, **kwargs):
    """Say in which format data was written if ``--dataset-impl`` gives another.

    Why: fairseq fails an assertion. Needed: always.
    """
    from fairseq.data.indexed_dataset import infer_dataset_impl

    written = infer_dataset_impl(path)
    if impl in BINARY and written in BINARY and BINARY[impl] != written:
        raise UserError(
            f"--dataset-impl {impl}: {path}.idx is in another format ({written}): leave the option out, and fairseq "
            "reads what it finds"
        )
    return make_dataset(path, impl, *args, **kwargs)


@replaces("fairseq.data.indexed_dataset", "MMapIndexedDatasetBuilder.finalize")
def count_bytes_in_whole_numbers(finalize, self, index_file):
    """Write where the sentences of a file of more than 2 GiB begin.

    Why: ``fairseq-preprocess --workers`` adds up lengths of 32 bits, and the sums stay in 32 bits. Wrong places of
    sentences are written without an error. Needed: from numpy 2.
    """
    self._sizes = [int(size) for size in self._sizes]
    finalize(self, index_file)


@replaces("fairseq.data.indexed_dataset", "MMapIndexedDataset._do_init")
def read_data_without_tokens(do_init, self, path):
    """Read data in which every line is empty, such as alignments without links.

    Why: an empty file cannot be mapped into memory. Needed: always.
    """
    import numpy as np
    from fairseq.data.indexed_dataset import data_file_path, index_file_path

    if os.path.getsize(data_file_path(path)):
        return do_init(self, path)
    self._path, self._index = path, self.Index(index_file_path(path))
    self._bin_buffer_mmap = np.memmap(index_file_path(path), mode="r")  # any file: nothing is read from it
    self._bin_buffer = memoryview(self._bin_buffer_mmap)
