"""Concatenated language pairs, ordered and batched by the length of source plus target, and packed."""

from collections.abc import Sequence

import numpy as np
from fairseq.data import BaseWrapperDataset, FairseqDataset, LanguagePairDataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lwc_fairseq_compat import UserError

from .packing import pack
from .reverse import reverse_words


class ConcatPairDataset(BaseWrapperDataset):
    """A :class:`LanguagePairDataset` in which the length of a pair is n + m, for n source and m target tokens.

    Args:
        dataset: the pairs.
        padding_idx: the id of the padding token.
        with_packing: whether to add "packing", the fields of :class:`~lwc_fairseq.data.packing.Packing`, to a batch's
            net_input.
        reverse_target: whether to reverse the words of each target.
        reverse_tokens: the reverse translation of each pair, with the end symbol last. A batch's net_input then has
            "reverse_tokens" (B, T), with padding on the right, and the batch their number, "reverse_ntokens".
    """

    def __init__(
        self,
        dataset: LanguagePairDataset,
        padding_idx: int,
        with_packing: bool = False,
        reverse_target: bool = False,
        reverse_tokens: Sequence[Tensor] | None = None,
    ):
        super().__init__(dataset)
        assert reverse_tokens is None or len(reverse_tokens) == len(dataset)
        self.padding_idx = padding_idx
        self.with_packing = with_packing
        self.reverse_target = reverse_target
        self.reverse_tokens = reverse_tokens

    @property
    def src(self):
        """The source sentences; fairseq-generate --replace-unk reads the original text from them."""
        return self.dataset.src

    @property
    def tgt(self):
        """The target sentences, or None."""
        return self.dataset.tgt

    def __getitem__(self, index: int) -> dict:
        item = super().__getitem__(index)
        if self.reverse_target and item["target"] is not None:
            item["target"] = reverse_words(item["target"], self.dataset.tgt_dict.eos())
        if self.reverse_tokens is not None:
            item["reverse_tokens"] = self.reverse_tokens[index]
        return item

    def collater(self, samples: list[dict], pad_to_length: dict | None = None) -> dict:
        """Return fairseq's batch. With `with_packing`, net_input contains "packing" if there is a target."""
        batch = self.dataset.collater(samples, pad_to_length)
        inputs = batch.get("net_input", {})
        if self.with_packing and "prev_output_tokens" in inputs:
            inputs["packing"] = vars(pack(inputs["src_tokens"], inputs["prev_output_tokens"], self.padding_idx))
        if samples and "reverse_tokens" in samples[0]:
            by_number = {sample["id"]: sample["reverse_tokens"] for sample in samples}
            rows = [by_number[number] for number in batch["id"].tolist()]  # fairseq has sorted the batch
            inputs["reverse_tokens"] = pad_sequence(rows, batch_first=True, padding_value=self.padding_idx)
            batch["reverse_ntokens"] = sum(map(len, rows))
        return batch

    def num_tokens(self, index: int) -> int:
        """Return n + m of a pair. --max-tokens limits their sum over a batch."""
        return int(self.num_tokens_vec(np.array([index]))[0])

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        """Return n + m of each pair."""
        pairs = self.dataset
        return pairs.src_sizes[indices] + (0 if pairs.tgt_sizes is None else pairs.tgt_sizes[indices])

    def batch_by_size(self, indices: np.ndarray, max_tokens: int | None = None, **limits) -> list[np.ndarray]:
        """Return fairseq's batches, with n + m as the length of a pair. (The wrapped dataset would use max(n, m).)

        Raises:
            UserError: a pair is longer than max_tokens. (A source without a target may be longer; it forms its own
                batch.)
        """
        lengths = self.num_tokens_vec(indices)
        if self.tgt is not None and max_tokens is not None and len(lengths) and lengths.max() > max_tokens:
            raise UserError(
                f"pair #{indices[lengths.argmax()]} has {lengths.max()} source plus target tokens, more than "
                f"--max-tokens {max_tokens}: raise --max-tokens, or --max-tokens-valid if it is given"
            )
        return FairseqDataset.batch_by_size(self, indices, max_tokens=max_tokens, **limits)

    def ordered_indices(self) -> np.ndarray:
        """Return the indices sorted by n + m, then by m. If pairs are shuffled, pairs equal in both are in random
        order."""
        pairs = self.dataset
        indices = np.random.permutation(len(self)) if pairs.shuffle else np.arange(len(self))
        if pairs.tgt_sizes is not None:
            indices = indices[np.argsort(pairs.tgt_sizes[indices], kind="stable")]
        return indices[np.argsort(self.num_tokens_vec(indices), kind="stable")]
