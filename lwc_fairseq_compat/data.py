"""Data: patches that name data sets and batches in messages."""

import atexit
import contextlib
import functools
import logging
import queue
import threading
import time
from pathlib import Path

from .errors import UserError
from .hooks import mends

EXIT_LIMIT_S = 5.0
"""Seconds that an ending command waits for the threads that read ahead. A disk may not respond."""

TRANSLATION_MODELS = (
    "of translation models fairseq-validate gives the perplexity, and fairseq-generate --score-reference the score of "
    "each reference"
)


@mends("fairseq.data.data_utils", "infer_language_pair")
def name_missing_pair(infer):
    """Say that the data folder is missing, or that no file in it identifies the language pair.

    Why: fairseq fails with a traceback. Needed: always.
    """

    @functools.wraps(infer)
    def infer_named_pair(path):
        hint = "give the folder that fairseq-preprocess wrote (its --destdir)"
        try:
            pair = infer(path)
        except OSError as error:
            raise UserError(f"data folder {path}: {error.strerror}; {hint}") from error
        if None in pair:
            raise UserError(f"data folder {path}: no data of a language pair in it; {hint}")
        return pair

    return infer_named_pair


@mends("fairseq.tasks.translation", "load_langpair_dataset")
def name_missing_split(load):
    """Say which splits there are when one is missing, or that it is of the other kind, binary or raw text.

    Why: fairseq fails with a traceback. Needed: always.
    """

    @functools.wraps(load)
    def load_named_dataset(data_path, split, *args, dataset_impl=None, **kwargs):
        try:
            return load(data_path, split, *args, dataset_impl=dataset_impl, **kwargs)
        except FileNotFoundError as error:
            binary, raw = splits_in(data_path)
            if dataset_impl == "raw" and split in binary:
                reason = f"its {split} is binary: leave out --dataset-impl raw"
            elif dataset_impl != "raw" and split in raw - binary:
                reason = f"its {split} is raw text: add --dataset-impl raw"
            else:
                reason = f"no {split} in it, only {', '.join(sorted(binary | raw)) or 'none'}"
                if split in ("train", "valid", "test"):
                    reason += f": fairseq-preprocess writes it from --{split}pref"
            raise UserError(f"data folder {data_path}: {reason}") from error

    return load_named_dataset


def splits_in(folder):
    """Return the names of the binary splits and of those of raw text in a data folder."""
    files = [file.name.split(".") for file in Path(folder).glob("*.*-*.*")]
    binary = {parts[0] for parts in files if parts[-1] == "idx"}
    return binary, {parts[0] for parts in files if len(parts) == 3}


@mends("fairseq.tasks.translation", "load_langpair_dataset")
def count_primary_data_once(load):
    """Combine several training sets (``train``, ``train1``, …) without ``--upsample-primary``.

    Why: its default is -1, with which lengths are repeated -1 times. This is an error; older versions of numpy return
    no data. Needed: always.
    """

    @functools.wraps(load)
    def load_with_primary_data(*args, upsample_primary=1, **kwargs):
        return load(*args, upsample_primary=max(1, upsample_primary), **kwargs)

    return load_with_primary_data


@mends("fairseq.tasks.translation")
def refuse_scores_of_a_language_model(module):
    """Say that ``fairseq-eval-lm`` is not for translation.

    Why: the command calls a method that the task lacks. Mends: ``TranslationTask``. Needed: always.
    """

    def eval_lm_dataloader(self, *args, **kwargs):
        raise UserError(f"fairseq-eval-lm is for language models; {TRANSLATION_MODELS}")

    module.TranslationTask.eval_lm_dataloader = eval_lm_dataloader


@mends("fairseq.trainer", "Trainer.train_step")
def name_batch_with_bad_gradients(train_step):
    """Name the sentences of the batch whose gradients are not finite.

    Why: fairseq does not tell them. Needed: always.
    """

    @functools.wraps(train_step)
    def train_step_on_named_batch(self, samples, *args, **kwargs):
        try:
            return train_step(self, samples, *args, **kwargs)
        except FloatingPointError as error:
            numbers = ", ".join(str(number) for sample in samples if sample for number in sample["id"].tolist())
            raise UserError(
                f"update {self.get_num_updates() + 1}: {error}. Its batch is the training sentences {numbers} (from 0, "
                "in the order of the training set). If they are sound, lower --lr, or set --clip-norm"
            ) from error

    return train_step_on_named_batch


@mends("fairseq.trainer", "Trainer._prepare_sample")
def remember_batch(prepare_sample):
    """Keep the current batch for :func:`tell_size_of_large_batch`.

    Needed: always.
    """

    @functools.wraps(prepare_sample)
    def prepare_and_remember_sample(self, sample, *args, **kwargs):
        self._sample_at_hand = sample
        return prepare_sample(self, sample, *args, **kwargs)

    return prepare_and_remember_sample


@mends("fairseq.trainer", "Trainer._log_oom")
def tell_size_of_large_batch(log_oom):
    """Log the size of a batch that does not fit into memory.

    Why: fairseq prints only the state of the memory. Needed: always.
    """
    logger = logging.getLogger("fairseq.trainer")

    @functools.wraps(log_oom)
    def log_oom_and_batch(self, error):
        log_oom(self, error)
        if sample := self._sample_at_hand:
            rows, length = sample["net_input"]["src_tokens"].shape
            logger.warning(
                f"the batch has {rows} sentences of {length} source tokens at most and {sample['ntokens']} target "
                "tokens in all: if this happens often, lower --max-tokens"
            )

    return log_oom_and_batch


@mends("fairseq.data.iterators")
def stop_reading_ahead_at_exit(module):
    """Let a command that ends in the middle of an epoch keep its last message and its exit status.

    Why: a daemon thread reads batches ahead. If Python shuts down while that thread is inside torch, Python ends the
    thread by force, and C++ aborts the whole process: ``terminate called without an active exception``, status 134.
    Mends: ``BackgroundConsumer``. Needed: always.
    """

    @atexit.register
    def stop_reading_ahead():
        readers = [thread for thread in threading.enumerate() if isinstance(thread, module.BackgroundConsumer)]
        give_up = time.monotonic() + EXIT_LIMIT_S
        for reader in readers:
            reader._max_len = 0  # it stops after the current batch, once the queue has room for it
        while any(reader.is_alive() for reader in readers) and time.monotonic() < give_up:
            for reader in readers:
                with contextlib.suppress(queue.Empty):
                    reader._queue.get(timeout=0.01)


@mends("fairseq.data.data_utils", "_find_extra_valid_paths")
def find_names_of_validation_sets(find):
    """Return the names of further validation sets, such as ``valid1``, without the languages of their files.

    Why: fairseq compares them with ``--valid-subset valid,valid1`` and refuses sets that are named there. Needed:
    always.
    """

    @functools.wraps(find)
    def find_names(dataset_path):
        return {name.partition(".")[0] for name in find(dataset_path)}

    return find_names


@mends("fairseq.data.data_utils", "raise_if_valid_subsets_unintentionally_ignored")
def refuse_ignored_validation_sets(check):
    """Say in one line that further validation sets would be ignored.

    Why: fairseq fails with a traceback. Needed: always.
    """

    @functools.wraps(check)
    def check_validation_sets(train_cfg):
        try:
            check(train_cfg)
        except ValueError as error:
            raise UserError(f"{error} Or name all sets, as in --valid-subset valid,valid1") from error
        except FileNotFoundError as error:
            raise UserError(f"data folder {error.filename}: {error.strerror}") from error

    return check_validation_sets
