"""Options of ``fairseq-generate`` and ``fairseq-interactive`` that fail or do nothing in fairseq 0.12.2."""

import functools
import logging
import math
import sys

import numpy as np

from .errors import UserError
from .hooks import mends


@mends("fairseq.ngram_repeat_block", "NGramRepeatBlock._no_repeat_ngram")
def block_repeated_ngrams(block):
    """Let ``--no-repeat-ngram-size`` block repeated n-grams.

    Why: without fairseq's CUDA extension, fairseq looks for the last tokens of a hypothesis at the end of a row that is
    padded to the maximum length. It finds padding there and blocks nothing. A size of 1 never works.
    Needed: always.
    """

    @functools.wraps(block)
    def block_without_padding(self, tokens, lprobs, bsz, beam_size, step):
        if self.no_repeat_ngram_size == 1:
            return lprobs.scatter_(1, tokens[:, 1 : step + 1], -math.inf)
        return block(self, tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    return block_without_padding


@mends("fairseq.utils", "replace_unk")
def replace_unknown_words(replace_unk):
    """Let ``--replace-unk`` find the source word that an unknown word is aligned to.

    Why: it expects one source position for each target token. fairseq passes pairs of source and target
    (``--print-alignment hard``), rows of weights (``soft``), or nothing. Needed: always.
    """

    def position(link):
        if isinstance(link, tuple):
            return link[0]
        words = range(len(link) - 1)  # without the end symbol
        return max(words, key=lambda i: float(link[i]), default=0)

    @functools.wraps(replace_unk)
    def replace_unk_by_links(hypo_str, src_str, alignment, align_dict, unk):
        if not len(alignment) and unk in hypo_str.split():
            raise UserError("--replace-unk needs an alignment: add --print-alignment hard")
        return replace_unk(hypo_str, src_str, [position(link) for link in alignment], align_dict, unk)

    return replace_unk_by_links


@mends("fairseq.utils", "load_align_dict")
def copy_unknown_words(load_align_dict):
    """Let a bare ``--replace-unk`` copy the source word.

    Why: its value is then ``"@@ "``, which fairseq opens as a file. The empty string has the wanted effect.
    Needed: always.
    """

    @functools.wraps(load_align_dict)
    def load_align_dict_if_named(replace_unk):
        return load_align_dict("" if replace_unk == "@@ " else replace_unk)

    return load_align_dict_if_named


@mends("fairseq.utils", "post_process_prediction")
def print_soft_alignments(post_process_prediction):
    """Let ``fairseq-interactive --print-alignment soft`` print what ``fairseq-generate`` prints.

    Why: the command takes each row of weights for a pair of positions and fails. This patch turns a row into a pair of
    the weights and a mark, and removes the mark when the command prints the line.
    Mends also: ``print`` in the module of the command. Needed: always.
    """
    mark = "\0"

    def print_without_marks(text, **settings):
        print(text.replace(f"-{mark}", ""), **settings)

    @functools.wraps(post_process_prediction)
    def post_process_with_rows_as_pairs(*args, **kwargs):
        tokens, text, alignment = post_process_prediction(*args, **kwargs)
        command = sys._getframe(1).f_globals
        if "buffered_read" in command and isinstance(alignment, list) and alignment and isinstance(alignment[0], list):
            command["print"] = print_without_marks
            alignment = [(",".join(row), mark) for row in alignment]
        return tokens, text, alignment

    return post_process_with_rows_as_pairs


@mends("fairseq.options", "get_generation_parser")
def generate_one_shard(get_generation_parser):
    """Let ``fairseq-generate --num-shards 4 --shard-id 0`` translate a quarter of the batches.

    Why: the command reads the size of a distributed job instead, and translates everything. This patch changes the
    parser, because ``fairseq_cli/generate.py`` may be imported before PyTorch, and so before this package.
    Needed: always.
    """

    @functools.wraps(get_generation_parser)
    def get_generation_parser_with_shards(interactive=False, **settings):
        parser = get_generation_parser(interactive=interactive, **settings)
        if not interactive:  # fairseq-interactive always translates all of its input
            parser._option_string_actions["--num-shards"].dest = "distributed_world_size"
            parser._option_string_actions["--shard-id"].dest = "distributed_rank"
        return parser

    return get_generation_parser_with_shards


@mends("fairseq.data.iterators", "ShardedIterator.__init__")
def name_missing_shard(init):
    """Say which values of ``--shard-id`` are valid.

    Why: fairseq's message gives no value. Needed: always.
    """

    @functools.wraps(init)
    def init_of_known_shard(self, iterable, num_shards, shard_id, **settings):
        if not 0 <= shard_id < num_shards:
            raise UserError(
                f"--shard-id {shard_id}: with --num-shards {num_shards} it must be from 0 to {num_shards - 1}"
            )
        init(self, iterable, num_shards, shard_id, **settings)

    return init_of_known_shard


@mends("fairseq.data.fairseq_dataset", "FairseqDataset.batch_by_size")
def translate_long_lines_alone(batch_by_size):
    """Translate a line that is longer than ``--max-tokens`` alone, with a warning.

    This applies to data without targets, as in ``fairseq-interactive``. A training or test set is refused as before.
    Why: fairseq ends the command. Needed: always.
    """
    logger = logging.getLogger("fairseq.data.fairseq_dataset")

    @functools.wraps(batch_by_size)
    def batch_by_size_or_alone(self, indices, max_tokens=None, **limits):
        if max_tokens is None or getattr(self, "tgt", self) is not None:
            return batch_by_size(self, indices, max_tokens=max_tokens, **limits)
        lengths = {index: self.num_tokens(index) for index in indices}
        alone = [index for index in indices if lengths[index] > max_tokens]
        for index in alone:
            logger.warning(f"a line of {lengths[index]} tokens, more than --max-tokens {max_tokens}: translated alone")
        rest = np.array([index for index in indices if lengths[index] <= max_tokens], dtype=np.int64)
        batches = batch_by_size(self, rest, max_tokens=max_tokens, **limits) if len(rest) else []
        return [*batches, *(np.array([index]) for index in alone)]

    return batch_by_size_or_alone
