"""Translations of whole data sets by a right-to-left model."""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.utils import move_to_cuda, resolve_max_positions
from torch import Tensor

from ..data.reverse import reverse_words


def translate_reversed(
    model: BaseFairseqModel, task: FairseqTask, sources, numbers: np.ndarray, beam: int, batch_size: int
) -> Iterator[list[tuple[int, Tensor]]]:
    """Yield batches of translations (m,), each with the number of its sentence: the words from right to left, and the
    end symbol last. The longest sources come first.

    A source of n tokens gets at most 2n tokens, as in `abd`. The sources of a batch have the same length, so that a
    translation does not depend on the other sentences of its batch. Of those that the beam has found, the most probable
    one is taken, without a length penalty. A source that is too long for the model is truncated.

    Args:
        model: a right-to-left model in evaluation mode.
        task: its task, which knows that the model's targets are reversed.
        sources: the sources of a data set.
        numbers: the numbers of those to translate.
        batch_size: the most sentences in a batch.
    """
    model.make_generation_fast_(need_attn=False)
    longest, _ = resolve_max_positions(task.max_positions(), model.max_positions())
    lengths = np.minimum(np.asarray(sources.sizes), longest)
    order = numbers[np.argsort(-lengths[numbers], kind="stable")]
    eos, is_cuda = task.target_dictionary.eos(), next(model.parameters()).is_cuda
    for length, group in groupby(order.tolist(), key=lambda number: int(lengths[number])):
        limits = {"max_len_a": 0, "max_len_b": 2 * length - 1}  # the end symbol is not counted
        generator = task.build_generator([model], GenerationConfig(beam=beam, lenpen=0, **limits))
        of_length = list(group)
        for start in range(0, len(of_length), batch_size):
            rows = of_length[start : start + batch_size]
            tokens = [sources[row] for row in rows]
            dataset = task.build_dataset_for_inference(tokens, [len(row) for row in tokens])
            sample = dataset.collater([dataset[i] for i in range(len(dataset))])
            finalized = task.inference_step(generator, [model], move_to_cuda(sample) if is_cuda else sample)
            yield [
                (rows[i], reverse_words(hypotheses[0]["tokens"], eos).cpu())
                for i, hypotheses in zip(sample["id"].tolist(), finalized, strict=True)
            ]
