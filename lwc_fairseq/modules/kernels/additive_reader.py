"""Additive attention inside a chain of GRUs, with a hand-written backward pass: the kernel of
:class:`~lwc_fairseq.modules.recurrent.AdditiveAttention`.

    α_i = softmax_i(v · tanh(W s + U h_i)),   read = Σ_i α_i (V h_i)

V h_i (`gates` of the memory) is the contribution of h_i to the gates of the GRU that takes the context. Because V Σ_i
α_i h_i = Σ_i α_i (V h_i), the loop needs no product with V.

Letters: S sentences, R = S · beam rows (one state per hypothesis), T steps, n memory positions, d width of the state
and of the attention.
"""

import torch
from torch import Tensor

from .tanh import tanh_of_sum

LARGEST = 2**22
"""Maximum number of elements of a temporary tensor on the CPU. glibc returns blocks of more than 32 MiB to the system
and requests them again, page by page, which takes longer than the computation itself."""


class AdditiveReader:
    """Attends from the states of one loop over time to a memory.

    Each `beam` consecutive rows share the memory of one sentence, without copies.

    Args:
        query: W, (d, d).
        energy: v, (d,).
        keys, values: U h (S, n, d) and V h (S, n, 3d).
        padding_mask: (S, n), True at padding.
    """

    def __init__(self, query: Tensor, energy: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor):
        self.keys, self.values = keys, values
        self.query, self.energy = query.to(keys.dtype), energy.to(keys.dtype)
        self.padding_mask = padding_mask[:, None]
        self.tensors = (self.query, self.energy, self.keys, self.values)
        """The tensors that get gradients."""

    def begin(self, steps: int, rows: int) -> None:
        """Allocate the tensors that the loop stores, for T steps and R rows."""
        sentences, tokens, dim = self.keys.shape
        beam = rows // sentences
        self.queries = self.keys.new_empty(steps, sentences, beam, 1, dim)
        self.alphas = self.keys.new_empty(steps, sentences, beam, tokens)
        self.scores = torch.empty_like(self.alphas).copy_(self.padding_mask)  # at first 1 at padding, and 0 at words

    def read(self, step: int, state: Tensor, given: Tensor, beta: int) -> None:
        """Add what the states (R, d) of a step read to beta · given, (R, 3d), in place."""
        query, scores, alpha = self.queries[step], self.scores[step], self.alphas[step]
        sentences, beam, _ = alpha.shape
        torch.mm(state, self.query.T, out=query.view(state.shape))
        self._score(query, scores)
        torch.softmax(scores, -1, out=alpha)
        given.view(sentences, beam, given.size(1)).baddbmm_(alpha, self.values, beta=beta)

    def _score(self, query: Tensor, scores: Tensor) -> None:
        """Compute the scores (S, beam, n) of queries (S, beam, 1, d) in place, on a CPU a few sentences at a time.

        Padding gets half of the lowest number, so that adding to it never reaches -∞: the softmax of a sentence with
        no words would be NaN.
        """
        sentences, lowest = len(query), torch.finfo(scores.dtype).min / 2
        if not query.is_cuda:
            sentences = max(1, LARGEST * sentences // (query.size(1) * self.keys.numel()))
        for part in zip(query.split(sentences), self.keys.split(sentences), scores.split(sentences), strict=True):
            tanh = additive_tanh(*part[:2])
            part[2].view(-1).addmv_(tanh.view(-1, tanh.size(-1)), self.energy, beta=lowest)


class AdditiveReaderGradients:
    """The backward loop of a reader, from the last step to the first.

    It recomputes the tanh instead of storing it, because a tensor (S, beam, n, d) per step would be by far the largest.

    The loop leaves the factor -v out of the gradients of the queries. The query matrix has it instead, and so has the
    gradient of that matrix, once.

    Args:
        grad_weights: the gradient of the reader's weights α.
        queries: where the loop writes the gradients of the queries, (T, R, d).
    """

    def __init__(self, reader: AdditiveReader, grad_weights: Tensor, queries: Tensor):
        self.reader = reader
        self.grad_alphas = grad_weights.clone(memory_format=torch.contiguous_format)  # the loop adds those of the reads
        self.grad_scores: list[Tensor] = []  # from the last step to the first, (S, beam, n)
        self.queries = queries
        self.factor = -reader.energy[:, None]
        self.query = reader.query * self.factor
        self.energy = torch.zeros_like(reader.energy)
        # The gradient of the keys without the factor v is Σ_t ds - Σ_t ds · tanh². This is the second sum.
        self.scores_tanh2 = torch.zeros_like(reader.keys)

    def read(self, step: int, grad_read: Tensor) -> None:
        """Compute the gradient of a step's queries from the gradient of what they read, (R, 3d)."""
        reader = self.reader
        sentences, tokens, dim = reader.keys.shape
        alpha, query = reader.alphas[step], reader.queries[step]
        by_sentence = grad_read.view(sentences, -1, grad_read.size(-1))
        grad_alpha = self.grad_alphas[step].baddbmm_(by_sentence, reader.values.transpose(1, 2))
        grad_score = torch._softmax_backward_data(grad_alpha, alpha, -1, alpha.dtype)  # (S, beam, n)
        self.grad_scores.append(grad_score)

        tanh = additive_tanh(query, reader.keys)
        self.energy.addmv_(tanh.view(-1, dim).T, grad_score.view(-1))
        tanh2 = tanh.square_()
        for row in range(grad_score.size(1)):
            self.scores_tanh2.addcmul_(grad_score[:, row, :, None], tanh2[:, row])
        # v ∘ Σ_i ds_i (1 - tanh_i²) = -v ∘ Σ_i ds_i tanh_i², because the ds_i of a softmax sum to zero
        grad_query = self.queries[step].unsqueeze(1)
        torch.bmm(grad_score.view(-1, 1, tokens), tanh2.view(-1, tokens, dim), out=grad_query)

    def of_tensors(self, grad_query: Tensor, grad_reads: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the reader's `tensors`.

        Args:
            grad_query: the product of `queries` and the states that attend, summed over all steps, (d, d).
            grad_reads: the gradient of what all steps read, (T, R, 3d).
        """
        steps, sentences, beam, _ = self.grad_alphas.shape
        scores = torch.stack(self.grad_scores).sum((0, 2))
        grad_keys = (scores[..., None] - self.scores_tanh2) * self.reader.energy
        alphas = self.reader.alphas.permute(1, 3, 0, 2).reshape(sentences, -1, steps * beam)
        reads = grad_reads.view(steps, sentences, beam, -1).transpose(0, 1).reshape(sentences, steps * beam, -1)
        return grad_query * self.factor, self.energy, grad_keys, torch.bmm(alphas, reads)


def additive_tanh(query: Tensor, keys: Tensor) -> Tensor:
    """Compute tanh(W s + U h_i), (S, beam, n, d), from queries (S, beam, 1, d) and keys (S, n, d)."""
    return tanh_of_sum(query, keys[:, None])
