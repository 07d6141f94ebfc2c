"""Positions in an epoch: patches of how a training goes on within one, when its batches may be others."""

import functools
import logging
import math

from .hooks import mends

LOGGER = logging.getLogger("fairseq.data.iterators")


@mends("fairseq.data.iterators", "EpochBatchIterator.load_state_dict")
def go_on_with_next_epoch(load_state_dict):
    """Go on with the next epoch if as many batches as there are now have been done in this one.

    Why: with larger batches, less data or more processes, an epoch has fewer batches. fairseq ends in a traceback then.
    Needed: always.
    """

    @functools.wraps(load_state_dict)
    def load_position(self, state_dict):
        try:
            load_state_dict(self, state_dict)
        except RuntimeError:
            LOGGER.warning(
                f"epoch {self.epoch} now has {len(self)} batches, and {state_dict['iterations_in_epoch']} were done: "
                f"going on with epoch {self.epoch + 1} (--reset-dataloader would begin with epoch 1 again)"
            )
            self.epoch += 1

    return load_position


@mends("fairseq.data.iterators", "EpochBatchIterator._get_iterator_for_epoch")
def skip_only_last_batch(get_iterator_for_epoch):
    """Leave out the last batch of an epoch that is resumed, with ``--skip-remainder-batch``, and no others.

    Why: fairseq counts the batches from where it resumes, and so takes the epoch for one that ends there.
    Needed: always.
    """

    @functools.wraps(get_iterator_for_epoch)
    def get_iterator_from(self, *args, offset=0, **kwargs):
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

    return get_iterator_from


@mends("fairseq.data.iterators", "GroupedIterator.__init__")
def group_what_is_left(_):
    """Group all batches that are left in an epoch into updates.

    Why: fairseq computes the number of updates from the whole epoch. If it was begun with another --update-freq, its
    last batches stay undone, and the epoch begins again. Needed: always.
    """
    from fairseq.data.iterators import CountingIterator, _chunk_iterator

    def init(self, iterable, chunk_size, skip_remainder_batch=False):
        done = getattr(iterable, "n", 0)
        left = len(iterable) - done
        skips = skip_remainder_batch and left >= chunk_size
        groups = left // chunk_size if skips else math.ceil(left / chunk_size)
        if skips:
            iterable.take(done + groups * chunk_size)
        start = math.ceil(done / chunk_size)
        CountingIterator.__init__(self, _chunk_iterator(iterable, chunk_size, skips), start, start + groups)
        self.chunk_size = chunk_size

    return init
