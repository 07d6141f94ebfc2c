"""A slow reference of asynchronous bidirectional decoding (Zhang et al., AAAI 2018), for comparison.

One sentence pair and one position at a time, in float64. There is no batch, no padding and no mask: a sequence is
a list of vectors. Everything is differentiable by torch autograd; only the choice of the greedy words is not.

The backward decoder writes the target from right to left. The forward decoder writes it from left to right and
attends to the source annotations and to the states of the backward decoder. Either decoder's step is the
conditional GRU: one GRU reads the previous word, its result queries the attentions, a second GRU reads the contexts.
"""

import torch

from reference_deepatt import additive_attention, gru, linear, recurrent_layer

Tensor = torch.Tensor

PADDING = 1
END = 2

REVERSE = ("greedy", "reference")


def in_double(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights in float64; gradients flow to those given."""
    return {name: weight.double() for name, weight in weights.items()}


def annotate(weights: dict[str, Tensor], source: list[int]) -> tuple[list[Tensor], Tensor, Tensor]:
    """The annotations h_1..h_n, h_i = [forward_i; backward_i], and the last state that each RNN computes.

    These are forward_n, which has read the source from left to right, and backward_1, from right to left.
    """
    xs = [weights["encoder.embedding.weight"][token] for token in source]
    forward = recurrent_layer(weights, "encoder.forward_layer.cells", xs, None, backward=False)
    backward = recurrent_layer(weights, "encoder.backward_layer.cells", xs, None, backward=True)
    return [torch.cat([forward[i], backward[i]]) for i in range(len(xs))], forward[-1], backward[0]


def decode(
    weights: dict[str, Tensor], name: str, final: Tensor, memories: list[list[Tensor]], tokens: list[int]
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """The decoder `name` over its input tokens, with one attention for each memory.

    The first state is tanh(W final + b). At each step, with e the embedding of the input token and s' the last state:
    s~ = GRU_0(s', e); m_k = Att_k(s~, memory k); s = GRU_1(s~, [m_0; m_1; ...]);
    logits = W_o tanh(W_r [e; s; m_0; m_1; ...] + b_r) + b_o.
    Both decoders have the target embedding of the forward one.
    Returns logits (m, V), the m states s, and for each memory the attention weights (m, length of the memory).
    """
    state = torch.tanh(linear(weights, f"{name}.initial_state", final))
    logits: list[Tensor] = []
    states: list[Tensor] = []
    rows: list[list[Tensor]] = [[] for _ in memories]
    for token in tokens:
        embedding = weights["decoder.embedding.weight"][token]
        query = gru(weights, f"{name}.layers.0.cells.0", state, embedding)
        contexts: list[Tensor] = []
        for k, memory in enumerate(memories):
            context, alpha = additive_attention(weights, f"{name}.layers.0.attentions.{k}", query, memory)
            contexts.append(context)
            rows[k].append(alpha)
        state = gru(weights, f"{name}.layers.0.cells.1", query, torch.cat(contexts))
        readout = torch.tanh(linear(weights, f"{name}.readout.hidden", torch.cat([embedding, state, *contexts])))
        logits.append(linear(weights, f"{name}.output", readout))
        states.append(state)
    return torch.stack(logits), states, [torch.stack(alphas) for alphas in rows]


def backward_pass(
    weights: dict[str, Tensor], source: list[int], reverse_input: list[int]
) -> tuple[Tensor, list[Tensor]]:
    """Logits (m, V) and the m states of the backward decoder, eqs. 1-4.

    reverse_input: m ids, the end symbol first, then target words from the last one back. The first state is made
    from the last state of the forward encoder RNN.
    """
    weights = in_double(weights)
    annotations, forward_last, _ = annotate(weights, source)
    logits, states, _ = decode(weights, "backward_decoder", forward_last, [annotations], reverse_input)
    return logits, states


def greedy_reverse(weights: dict[str, Tensor], source: list[int], limit: int, eos: int = END) -> list[int]:
    """The input tokens [eos, y, y', ...] of the greedy pass from right to left; there is one state for each.

    Each word is the likeliest after those before it, never padding. The pass ends when eos is the likeliest, or
    with `limit` tokens. The state that chooses eos is the last token's: it belongs to the context.
    """
    tokens = [eos]
    with torch.no_grad():
        while len(tokens) < limit:
            last = backward_pass(weights, source, tokens)[0][-1].clone()
            last[PADDING] = -torch.inf
            choice = int(last.argmax())
            if choice == eos:
                break
            tokens.append(choice)
    return tokens


def forward_pass(
    weights: dict[str, Tensor], source: list[int], reverse_states: list[Tensor], target_input: list[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (m, V), source attention (m, n) and reverse attention (m, number of reverse states), eqs. 5-13.

    target_input: m ids, the end symbol first, then target words. The first state is made from the first position's
    state of the backward encoder RNN.
    """
    weights = in_double(weights)
    annotations, _, backward_first = annotate(weights, source)
    logits, _, alphas = decode(weights, "decoder", backward_first, [annotations, reverse_states], target_input)
    return logits, alphas[0], alphas[1]


def nll_and_smoothed(logits: Tensor, target: list[int], label_smoothing: float) -> tuple[Tensor, Tensor]:
    """Sums over the words, in nats: the negative log likelihood, and the label-smoothed loss.

    With eps = label_smoothing and eps_i = eps / (V - 1), a word's smoothed loss is
    (1 - eps - eps_i) * nll + eps_i * (sum over the vocabulary of -log p).
    """
    nll = torch.zeros((), dtype=torch.float64)
    smoothed = torch.zeros((), dtype=torch.float64)
    for row, word in zip(logits, target, strict=True):
        minus_log = -torch.log_softmax(row, dim=0)
        eps_i = label_smoothing / (len(row) - 1)
        nll = nll + minus_log[word]
        smoothed = smoothed + (1 - label_smoothing - eps_i) * minus_log[word] + eps_i * minus_log.sum()
    return nll, smoothed


def abd_loss(
    weights: dict[str, Tensor],
    source: list[int],
    target: list[int],
    forward_weight: float,
    reverse: str,
    limit: int,
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of one sentence pair (eq. 14, negated), and the unsmoothed sums of the two decoders, in nats.

    total = forward_weight * forward + (1 - forward_weight) * backward, both smoothed.
    target: the words, then the end symbol. reverse: the words of which the forward decoder sees the reverse states,
    "greedy" (at most `limit` states; the words are constants, the states are not) or "reference" (all of the
    backward decoder's states over the reversed target).
    """
    if reverse not in REVERSE:
        raise ValueError(reverse)
    words, eos = target[:-1], target[-1]
    reversed_words = words[::-1]
    backward_logits, reverse_states = backward_pass(weights, source, [eos] + reversed_words)
    if reverse == "greedy":
        _, reverse_states = backward_pass(weights, source, greedy_reverse(weights, source, limit, eos))
    forward_logits, _, _ = forward_pass(weights, source, reverse_states, [eos] + words)
    forward_nll, forward_smoothed = nll_and_smoothed(forward_logits, words + [eos], label_smoothing)
    backward_nll, backward_smoothed = nll_and_smoothed(backward_logits, reversed_words + [eos], label_smoothing)
    total = forward_weight * forward_smoothed + (1 - forward_weight) * backward_smoothed
    return total, forward_nll, backward_nll
