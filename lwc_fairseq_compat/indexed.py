"""Binary data of ``fairseq-preprocess``, in each of its formats (``--dataset-impl``)."""

import functools

from .errors import UserError
from .hooks import mends


@mends("fairseq.data.indexed_dataset", "IndexedCachedDataset.__getitem__")
def read_sentences_outside_the_cache(getitem):
    """Let training read data of ``fairseq-preprocess --dataset-impl lazy`` or ``cached``.

    Why: training first looks at a batch, before it reads the sentences of an epoch into the cache, and ends in a
    ``KeyError``. Needed: always.
    """
    from fairseq.data.indexed_dataset import IndexedDataset

    @functools.wraps(getitem)
    def getitem_or_read(self, i):
        return getitem(self, i) if i in self.cache_index else IndexedDataset.__getitem__(self, i)

    return getitem_or_read


BINARY = {"mmap": "mmap", "huffman": "huffman", "cached": "cached", "lazy": "cached"}
"""Values of ``--dataset-impl``, with the format that fairseq recognizes in their files."""


@mends("fairseq.data.indexed_dataset", "make_dataset")
def name_other_format(make_dataset):
    """Say in which format data was written if ``--dataset-impl`` gives another.

    Why: fairseq fails an assertion. Needed: always.
    """
    from fairseq.data.indexed_dataset import infer_dataset_impl

    @functools.wraps(make_dataset)
    def make_dataset_of_its_format(path, impl, *args, **kwargs):
        found = infer_dataset_impl(path)
        if impl in BINARY and found in BINARY and BINARY[impl] != found:
            raise UserError(
                f"--dataset-impl {impl}: {path}.idx is in another format ({found}): leave the option out, and fairseq "
                "reads what it finds"
            )
        return make_dataset(path, impl, *args, **kwargs)

    return make_dataset_of_its_format
