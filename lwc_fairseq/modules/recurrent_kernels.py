"""The kernels of :mod:`~lwc_fairseq.modules.recurrent`: loops over time with a hand-written backward pass.

**A chain of GRUs** is the kernel of GRULayer and ConditionalGRU. In each step, the state passes through a chain of
GRUs. The input x of a GRU is either known before the loop (a word, a state of the layer below) or a context that the
state reads from a memory (attention). The loop contains no input products: W x is computed for all time steps at once,
and because W Σ_i α_i h_i = Σ_i α_i W h_i, W h is computed once per memory.

The backward loop contains only what depends on the gradient of the state. All derivatives of gates and candidates are
computed for all time steps at once before the loop, and the gradients of the weights after it, as one product over all
steps. Autograd would store each step's intermediate tensors and accumulate each weight's gradient step by step.

On a GPU, a step takes as long as it takes to launch its operations. So the loops write their results where they are
needed next, without copies, and products add to what is already there.

**An additive reader** is the attention inside such a chain, the kernel of AdditiveAttention:

    α_i = softmax_i(v · tanh(W s + U h_i)),   read = Σ_i α_i (V h_i)

V is the input matrix, W in the paragraphs on the chain, of the GRU that takes the context. V h_i (`gates` of the
memory) is the contribution of h_i to the gates of this GRU. Because V Σ_i α_i h_i = Σ_i α_i (V h_i), the loop needs no
product with V.

Letters: T steps, S sentences, R = S · beam rows (one state per hypothesis), n memory positions, d width of the state
and of the attention. A shape that begins with … may have a leading axis, for several chains of equal shape that run
together; chains with readers have none.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

MINUS_ONE = torch.tensor(-1.0)
ONE = torch.tensor(1.0)
LARGEST = 2**19
"""Maximum number of elements of a temporary tensor on the CPU: 2 MiB in single precision. It stays in the cache of a
core (L2), where the passes over it take about half as long as those over a tensor of 16 MiB."""


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
            tanh = tanh_of_sum(part[0], part[1][:, None])
            part[2].view(-1).addmv_(tanh.view(-1, tanh.size(-1)), self.energy, beta=lowest)


class AdditiveReaderGradients:
    """The backward loop of a reader, from the last step to the first.

    It recomputes the tanh instead of storing it, because a tensor (S, beam, n, d) per step would be by far the largest.

    The loop leaves the factor -v out of the gradients of the queries. Instead, the attribute `query` is the query
    matrix times this factor, and `of_tensors` multiplies the gradient of the query matrix by it once, after the loop.

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

        tanh = tanh_of_sum(query, reader.keys[:, None])
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


class Link:
    """One GRU of a chain, for one loop over time.

    Args:
        recurrent: U, (…, 3d, d).
        inputs: W x + b of all steps, (…, T, R, 3d), which the loop overwrites; or None if the GRU's whole input comes
            from memories.
        readers: attentions to memories. The gates add what they read.
    """

    def __init__(self, recurrent: Tensor, inputs: Tensor | None = None, readers: tuple[AdditiveReader, ...] = ()):
        self.inputs = inputs
        self.readers = readers
        # Under autocast the inputs have half precision and the weights single.
        dtype = readers[0].keys.dtype if inputs is None else inputs.dtype
        self.recurrent = recurrent.to(dtype)
        gru_tensors = (self.recurrent,) if inputs is None else (self.recurrent, inputs)
        self.tensors = gru_tensors + tuple(tensor for reader in readers for tensor in reader.tensors)
        """The tensors that get gradients."""

    def begin(self, states: Tensor) -> None:
        """Allocate the tensors that the forward loop stores for the backward loop.

        Args:
            states: where the loop stores the state before each step, (…, T, R, d).
        """
        *leading, steps, rows, dim = states.shape
        self.states = states
        self.reset_states = torch.empty_like(states)
        # At first the input of each step, then [z; r; h̃].
        inputs = self.inputs
        self.activations = states.new_empty(*leading, steps, rows, 3 * dim) if inputs is None else inputs
        self.gates, self.candidates = self.activations.split([2 * dim, dim], dim=-1)
        stored = (states, self.activations, self.gates, *self.gates.chunk(2, dim=-1), self.candidates)
        self.steps = list(zip(*(tensor.unbind(-3) for tensor in (*stored, self.reset_states)), strict=True))
        self.of_gates, self.of_candidate = (part.mT for part in self.recurrent.split([2 * dim, dim], dim=-2))
        for reader in self.readers:
            reader.begin(steps, rows)

    def step(self, t: int, out: Tensor) -> None:
        """Write GRU(state before step t, input of step t), (…, R, d), to `out`."""
        state, activation, gates, update, reset, candidate, reset_state = self.steps[t]
        for number, reader in enumerate(self.readers):
            reader.read(t, state, activation, beta=0 if number == 0 and self.inputs is None else 1)
        add_product_(gates, state, self.of_gates).sigmoid_()
        torch.mul(reset, state, out=reset_state)
        tanh_(add_product_(candidate, reset_state, self.of_candidate))
        torch.lerp(state, candidate, update, out=out)


class LinkGradients:
    """The backward loop of a link, from the last step to the first.

    With δ, the gradient of h', the gradients of the inputs of a GRU's gates and candidate are

        δ_z = δ ∘ (h̃ - h) ∘ z (1 - z),   δ_h = δ ∘ z ∘ (1 - h̃²),   δ_r = g ∘ h ∘ r (1 - r)   with g = U_hᵀ δ_h

    and that of h is δ ∘ (1 - z) + g ∘ r + U_zᵀ δ_z + U_rᵀ δ_r + Σ_k W_kᵀ δ_k, where δ_k is the gradient of the query of
    reader k. The results of a step stand side by side in `slots`: [δ_1; …; δ_K; δ_z; δ_r; δ_h; g; gradient of h].
    Number the slots from δ_z on: 1 to 5. Slots 1, 3 and 5 are products with δ, and slots 2 and 5 are products with g.
    One operation computes each of these two groups. One matrix product of the slots from δ_1 to δ_r computes the last
    three terms of the gradient of h.

    Args:
        grad_weights: the gradient of each reader's attention weights.
    """

    def __init__(self, link: Link, grad_weights: list[Tensor]):
        self.link = link
        states, dim, count = link.states, link.states.size(-1), len(link.readers)
        factors = factors_of(link)
        slots = states.new_zeros(*states.shape[:-1], count + 5, dim)
        self.of_state = slots[..., : count + 2, :].flatten(-2)  # δ_1 to δ_r, which W_k, U_z and U_r multiply
        self.given = slots[..., count : count + 3, :].flatten(-2)  # gradient of W x + b
        self.states = slots[..., count + 4, :]  # gradient of the states; the loop adds to what is there
        by_slot = [factors[..., ::2, :], slots[..., count::2, :]]
        by_slot += [factors[..., 1::2, :], slots[..., count + 1 :: 3, :]]
        by_row = (self.of_state, self.given, slots[..., count + 2, :], slots[..., count + 3, :], self.states)
        by_step = (*(tensor.unbind(-4) for tensor in by_slot), *(tensor.unbind(-3) for tensor in by_row))
        self.steps = list(zip(*by_step, strict=True))
        self.readers = [
            AdditiveReaderGradients(reader, grad, slots[..., number, :])
            for number, (reader, grad) in enumerate(zip(link.readers, grad_weights, strict=True))
        ]
        of_gates, self.of_candidate = link.recurrent.split([2 * dim, dim], dim=-2)
        queries = [reader.query for reader in self.readers]
        self.weights = torch.cat([*queries, of_gates]) if queries else of_gates

    def step(self, t: int, grad: Tensor) -> Tensor:
        """Compute the gradient of the state before step t, (…, R, d), from the gradient of the step's result."""
        factors, with_grad, reset_factors, with_product, of_state, given, candidate, product, state = self.steps[t]
        with_grad.addcmul_(grad.unsqueeze(-2), factors)
        write_product(product, candidate, self.of_candidate)
        with_product.addcmul_(product.unsqueeze(-2), reset_factors)
        for reader in self.readers:
            reader.read(t, given)
        return add_product_(state, of_state, self.weights)

    def of_tensors(self) -> tuple[Tensor, ...]:
        """Return the gradients of the link's `tensors`."""
        link, dim = self.link, self.states.size(-1)
        width = self.of_state.size(-1)
        grad = link.recurrent.new_empty(*link.recurrent.shape[:-2], width + dim, dim)
        candidates = self.given[..., 2 * dim :].flatten(-3, -2)
        write_product(grad[..., :width, :], self.of_state.flatten(-3, -2).mT, link.states.flatten(-3, -2))
        write_product(grad[..., width:, :], candidates.mT, link.reset_states.flatten(-3, -2))
        *grad_queries, grad_recurrent = grad.split([dim] * len(self.readers) + [3 * dim], dim=-2)
        gru_gradients = (grad_recurrent,) if link.inputs is None else (grad_recurrent, self.given)
        reads = zip(self.readers, grad_queries, strict=True)
        of_readers = (gradient for reader, query in reads for gradient in reader.of_tensors(query, self.given))
        return gru_gradients + tuple(of_readers)


def factors_of(link: Link) -> Tensor:
    """Compute what the backward loop of a link multiplies by δ or g, (…, T, R, 5, d): the factors of δ_z, δ_r and δ_h,
    and then r and 1 - z."""
    states, candidates = link.states, link.candidates
    update, reset = link.gates.chunk(2, dim=-1)
    factors = states.new_empty(*states.shape[:-1], 5, states.size(-1))
    of_update, of_reset, of_candidate, reset_again, kept = factors.unbind(-2)
    torch.ops.aten.sigmoid_backward(candidates - states, update, grad_input=of_update)
    torch.ops.aten.sigmoid_backward(states, reset, grad_input=of_reset)
    torch.ops.aten.tanh_backward(update, candidates, grad_input=of_candidate)
    reset_again.copy_(reset)
    torch.sub(ONE, update, out=kept)
    return factors


class _Chain(torch.autograd.Function):
    """The loop as one autograd operation. `tensors` are the tensors of all links."""

    @staticmethod
    def forward(ctx, links: list[Link], steps: int, state: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        *leading, rows, dim = state.shape
        states = state.new_empty(*leading, steps + 1, rows, dim)  # before each step, and after the last one
        first, *later = states.unbind(-3)
        first.copy_(state)
        after = states.narrow(-3, 1, steps)
        between = [torch.empty_like(after) for _ in links[1:]]
        for link, before in zip(links, [states.narrow(-3, 0, steps), *between], strict=True):
            link.begin(before)
        for t, outs in enumerate(zip(*(buffer.unbind(-3) for buffer in between), later, strict=True)):
            for link, out in zip(links, outs, strict=True):
                link.step(t, out)
        ctx.links = links  # they hold the tensors that the backward pass needs
        # The results refer to ctx. `detach` makes new tensors for them, so that the links do not hold the results.
        results = tuple(x.detach() for x in (after, *(reader.alphas for link in links for reader in link.readers)))
        ctx.save_for_backward(*tensors, *results)  # lets autograd detect in-place changes
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_results: Tensor, *grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # raises if a tensor has changed or the graph is freed
        remaining = iter(grad_weights)
        links = [LinkGradients(link, [next(remaining) for _ in link.readers]) for link in ctx.links]
        steps = grad_results.size(-3)
        links[0].states.narrow(-3, 1, steps - 1).copy_(grad_results.narrow(-3, 0, steps - 1))
        grad = grad_results.select(-3, -1)
        for t in reversed(range(steps)):
            for link in reversed(links):
                grad = link.step(t, grad)
        return None, None, grad, *(gradient for link in links for gradient in link.of_tensors())


def add_product_(out: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Add x y to `out` in place: matrices, or a batch of them."""
    return out.addmm_(x, y) if x.dim() == 2 else out.baddbmm_(x, y)


def write_product(out: Tensor, x: Tensor, y: Tensor) -> None:
    """Write x y to `out`: matrices, or a batch of them.

    torch.matmul would compute a batch in other memory and copy it to `out`.
    """
    torch.mm(x, y, out=out) if x.dim() == 2 else torch.bmm(x, y, out=out)


def run_chain(links: list[Link], steps: int, state: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Run a chain of GRUs over time. In each step, the state passes through all links; the next step continues with it.

    Args:
        links: the GRUs in the order of the chain.
        steps: T.
        state: the state before the first step, (…, R, d).

    Returns:
        The state after the last link of each step (…, T, R, d), and the attention weights of all readers, (T, S, beam,
        n) each, in the order of the chain.
    """
    state = state.to(links[0].recurrent.dtype)
    with torch.autocast(state.device.type, enabled=False):  # the links have one dtype
        results, *weights = _Chain.apply(links, steps, state, *(tensor for link in links for tensor in link.tensors))
    return results, weights


# On a CPU, PyTorch's tanh takes up to seven times as long as its σ (2.13, AVX-512, single precision), so the functions
# below compute tanh x = 2σ(2x) - 1. The absolute error is that of σ, about 1e-7 in single precision. In half precision
# this formula would lose small x, so PyTorch's tanh is used there, and on CUDA.


def tanh_(x: Tensor) -> Tensor:
    """Replace each entry by its tanh in place."""
    return x.tanh_() if has_fast_tanh(x) else tanh_of_half_(x.mul_(2))


def tanh_of_sum(x: Tensor, y: Tensor) -> Tensor:
    """Compute tanh(x + y). If one of the two is broadcast, pass it as x: this is faster."""
    return (x + y).tanh_() if has_fast_tanh(y) else tanh_of_half_(torch.add(x * 2, y, alpha=2))


def has_fast_tanh(x: Tensor) -> bool:
    """Whether PyTorch's tanh is used for x."""
    return x.is_cuda or x.dtype.itemsize < 4


def tanh_of_half_(x: Tensor) -> Tensor:
    """Replace each entry x by tanh(x / 2) = 2σ(x) - 1 in place."""
    return torch.add(MINUS_ONE, x.sigmoid_(), alpha=2, out=x)
