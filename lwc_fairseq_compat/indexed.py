"""Binary data of ``fairseq-preprocess``, in each of its formats (``--dataset-impl``)."""

import os

import numpy as np

from .errors import UserError
from .hooks import replaces


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


@replaces("fairseq.data.indexed_dataset", "MMapIndexedDataset._do_init")
def read_data_without_tokens(do_init, self, path):
    """Read data in which every line is empty, such as alignments without links.

    Why: an empty file cannot be mapped into memory. Needed: always.
    """
    from fairseq.data.indexed_dataset import data_file_path, index_file_path

    if os.path.getsize(data_file_path(path)):
        return do_init(self, path)
    self._path, self._index = path, self.Index(index_file_path(path))
    self._bin_buffer_mmap = np.memmap(index_file_path(path), mode="r")  # any file: nothing is read from it
    self._bin_buffer = memoryview(self._bin_buffer_mmap)
