"""Batches: patches of how an epoch of them is read and resumed, and of batches that are too large."""

import atexit
import contextlib
import logging
import math
import queue
import threading
import time

import numpy as np

from .errors import UserError
from .hooks import mends, replaces

EXIT_LIMIT_S = 5.0
"""Seconds that an ending command waits for the threads that read ahead. A disk may not respond."""


@replaces("fairseq.data.iterators", "EpochBatchIterator.state_dict")
def save_number_of_processes(state_dict, self):
    """Save how many processes read the batches of an epoch, for :func:`resume_with_other_batches`. Needed: always."""
    return {**state_dict(self), "num_shards": self.num_shards}


@replaces("fairseq.data.iterators", "EpochBatchIterator.load_state_dict")
def resume_with_other_batches(load_state_dict, self, state):
    """Resume in the middle of an epoch after the batches that were read, even with another number of processes.

    If the epoch now has no more batches than those, the next epoch begins.

    Why: the saved position counts the batches of one process. With another number of processes, training would skip
    or repeat batches. (If the new number does not divide the batches that were read, the last few are repeated.) Larger
    batches, less data or more processes make fewer batches; fairseq ends in a traceback. Needed: always.
    """
    shards = state.get("num_shards", self.num_shards)  # checkpoints of plain fairseq lack it
    position = state.get("iterations_in_epoch", 0) * shards // self.num_shards
    try:
        load_state_dict(self, {**state, "iterations_in_epoch": position})
    except RuntimeError:
        logging.getLogger("fairseq.data.iterators").warning(
            f"epoch {self.epoch} now has {len(self)} batches, and {position} were done: "
            f"going on with epoch {self.epoch + 1} (--reset-dataloader would begin with epoch 1 again)"
        )
        self.epoch += 1


@replaces("fairseq.data.iterators", "EpochBatchIterator._get_iterator_for_epoch")
def shuffle_as_asked(get_iterator_for_epoch, self, epoch, shuffle, *args, **kwargs):
    """With ``--curriculum``, shuffle the batches of the later epochs.

    Why: fairseq reads all epochs with one sampler, which keeps the order by length of the first ones. A resumed
    training skips batches of the shuffled order. Needed: always.
    """
    if self.dataloader is not None:
        self.batch_sampler.shuffle = shuffle
    return get_iterator_for_epoch(self, epoch, shuffle, *args, **kwargs)


@replaces("fairseq.data.iterators", "EpochBatchIterator._get_iterator_for_epoch")
def skip_only_last_batch(get_iterator_for_epoch, self, *args, offset=0, **kwargs):
    """With ``--skip-remainder-batch``, leave out only the last batch of an epoch that is resumed.

    Why: fairseq takes the number of batches that are left for the number in the epoch, and ends the epoch too early.
    Needed: always.
    """
    if not (self.skip_remainder_batch and offset):
        return get_iterator_for_epoch(self, *args, offset=offset, **kwargs)
    self.skip_remainder_batch = False
    try:
        iterator = get_iterator_for_epoch(self, *args, offset=offset, **kwargs)
    finally:
        self.skip_remainder_batch = True
    if iterator is None or iterator.total - 1 <= offset:
        return None
    return iterator.take(iterator.total - 1)


@replaces("fairseq.data.iterators", "GroupedIterator.__init__")
def group_what_is_left(_, self, iterable, chunk_size, skip_remainder_batch=False):
    """Group all batches that are left in an epoch into updates.

    Why: fairseq computes the number of updates from the whole epoch. If the epoch began with another --update-freq,
    its last batches stay undone, and the epoch begins again. Needed: always.
    """
    from fairseq.data.iterators import CountingIterator, _chunk_iterator

    done = getattr(iterable, "n", 0)
    left = len(iterable) - done
    skips = skip_remainder_batch and left >= chunk_size
    groups = left // chunk_size if skips else math.ceil(left / chunk_size)
    if skips:
        iterable.take(done + groups * chunk_size)
    start = math.ceil(done / chunk_size)
    CountingIterator.__init__(self, _chunk_iterator(iterable, chunk_size, skips), start, start + groups)
    self.chunk_size = chunk_size


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
            reader._max_len = 0  # the reader stops once the queue has room for its current batch
        while any(reader.is_alive() for reader in readers) and time.monotonic() < give_up:
            for reader in readers:
                with contextlib.suppress(queue.Empty):
                    reader._queue.get(timeout=0.01)


@replaces("fairseq.data.fairseq_dataset", "FairseqDataset.batch_by_size")
def translate_long_lines_alone(batch_by_size, self, indices, max_tokens=None, **limits):
    """Translate a line that is longer than ``--max-tokens`` in a batch of its own, and warn.

    This applies to data without targets, as in ``fairseq-interactive``. A set with targets is refused as before.
    Why: fairseq ends the command. Needed: always.
    """
    logger = logging.getLogger("fairseq.data.fairseq_dataset")
    if max_tokens is None or getattr(self, "tgt", self) is not None:
        return batch_by_size(self, indices, max_tokens=max_tokens, **limits)
    lengths = {index: self.num_tokens(index) for index in indices}
    alone = [index for index in indices if lengths[index] > max_tokens]
    for index in alone:
        logger.warning(f"a line of {lengths[index]} tokens, more than --max-tokens {max_tokens}: translated alone")
    rest = np.array([index for index in indices if lengths[index] <= max_tokens], dtype=np.int64)
    batches = batch_by_size(self, rest, max_tokens=max_tokens, **limits) if len(rest) else []
    return [*batches, *(np.array([index]) for index in alone)]


@replaces("fairseq.trainer", "Trainer.train_step")
def name_batch_with_bad_gradients(train_step, self, samples, *args, **kwargs):
    """Name the sentences of the batch whose gradients are not finite.

    Batches of several languages do not have their numbers in one place, and keep fairseq's message.
    Why: fairseq does not name them. Needed: always.
    """
    try:
        return train_step(self, samples, *args, **kwargs)
    except FloatingPointError as error:
        numbers = [str(number) for sample in samples if sample and "id" in sample for number in sample["id"].tolist()]
        if not numbers or "inconsistent" in str(error):  # the latter of several GPUs, whatever the batch
            raise
        raise UserError(
            f"update {self.get_num_updates() + 1}: {error}. Its batch is the training sentences {', '.join(numbers)} "
            "(from 0, in the order of the training set). If they are sound, lower --lr, or set --clip-norm"
        ) from error


@replaces("fairseq.trainer", "Trainer._log_oom")
def tell_size_of_large_batch(log_oom, self, error):
    """Log the size of a batch of text that does not fit into memory.

    Why: fairseq prints only the state of the memory. Needed: always.
    """
    log_oom(self, error)
    sample = error.__traceback__.tb_frame.f_locals.get("sample") or {}  # of the step of the trainer
    tokens = sample.get("net_input", {}).get("src_tokens")
    if tokens is not None and tokens.dim() == 2:
        rows, length = tokens.shape
        logging.getLogger("fairseq.trainer").warning(
            f"the batch has {rows} sentences of {length} source tokens at most and {sample['ntokens']} target "
            "tokens in all: if this happens often, lower --max-tokens"
        )
