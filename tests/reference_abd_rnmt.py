"""A slow float64 reference of `rnmt` and `abd_rnmt`, for comparison, written from the equations.

One sentence pair, one layer, one head and one position at a time. There is no batch, no padding, no mask and no
dropout: a sequence is a list of vectors. Everything is differentiable by torch autograd; only the choice of the greedy
words is not. The loss is that of `reference_abd`.
"""

import math

import torch

from reference_abd import END, PADDING, REVERSE, nll_and_smoothed
from reference_deepatt import linear

Tensor = torch.Tensor


def layer_norm(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Entries with mean 0 and variance 1, times the weight, plus the bias."""
    centred = x - x.mean()
    scaled = centred / torch.sqrt((centred**2).mean() + 1e-5)
    return weights[f"{name}.weight"] * scaled + weights[f"{name}.bias"]


def gru(weights: dict[str, Tensor], name: str, xs: list[Tensor], h: Tensor) -> list[Tensor]:
    """The states h_1..h_m, from h_0, of the GRU of PyTorch, whose weights have the rows of r, then z, then c:

    r = sigmoid(W_r x + b_r + U_r h + d_r), z = sigmoid(W_z x + b_z + U_z h + d_z),
    c = tanh(W_c x + b_c + r * (U_c h + d_c)), h' = (1 - z) * c + z * h.
    """
    states = []
    for x in xs:
        from_x = (weights[f"{name}.weight_ih_l0"] @ x + weights[f"{name}.bias_ih_l0"]).split(len(h))
        from_h = (weights[f"{name}.weight_hh_l0"] @ h + weights[f"{name}.bias_hh_l0"]).split(len(h))
        r, z = torch.sigmoid(from_x[0] + from_h[0]), torch.sigmoid(from_x[1] + from_h[1])
        h = (1 - z) * torch.tanh(from_x[2] + r * from_h[2]) + z * h
        states.append(h)
    return states


def attention(
    weights: dict[str, Tensor], name: str, x: Tensor, memory: list[Tensor], heads: int
) -> tuple[Tensor, Tensor]:
    """What x reads in the memory, and the weights over its states, averaged over the heads.

    Head p has the p-th part of queries, keys and values: softmax over i of q . k_i / sqrt(part), then the sum of v_i.
    """
    dim = len(x)
    part = dim // heads
    query = linear(weights, f"{name}.query", x)
    pairs = [linear(weights, f"{name}.key_value", state).split(dim) for state in memory]
    read, averages = [], torch.zeros(len(memory), dtype=torch.float64)
    for p in range(heads):
        own = slice(p * part, (p + 1) * part)
        scores = torch.stack([query[own] @ keys[own] / math.sqrt(part) for keys, _ in pairs])
        alpha = torch.softmax(scores, dim=0)
        read.append(sum(a * values[own] for a, (_, values) in zip(alpha, pairs, strict=True)))
        averages = averages + alpha / heads
    return linear(weights, f"{name}.output", torch.cat(read)), averages


def encode(weights: dict[str, Tensor], source: list[int]) -> tuple[list[Tensor], Tensor]:
    """The states h_1..h_n, and their mean."""
    xs = [weights["encoder.embedding.weight"][token] for token in source]
    zero = torch.zeros_like(xs[0])
    forward = gru(weights, "encoder.forward_layer", xs, zero)
    backward = gru(weights, "encoder.backward_layer", xs[::-1], zero)[::-1]
    states = [
        torch.tanh(linear(weights, "encoder.output", torch.cat(pair))) for pair in zip(forward, backward, strict=True)
    ]
    return states, sum(states) / len(states)


def decode(
    weights: dict[str, Tensor], name: str, mean: Tensor, memories: list[list[Tensor]], tokens: list[int], heads: int
) -> tuple[Tensor, list[Tensor], list[list[Tensor]]]:
    """The decoder `name` over its input tokens; the first memory is the source.

    Returns logits (m, V), the m states s, and for each layer and memory the attention weights (m, length of the
    memory).
    """
    embedding = weights["decoder.embedding.weight"]
    xs = [math.sqrt(len(mean)) * embedding[token] for token in tokens]
    layers = len({key for key in weights if key.startswith(f"{name}.layers.") and key.endswith("recurrent_norm.bias")})
    first_states = torch.tanh(linear(weights, f"{name}.initial_state", mean)).split(len(mean))
    found = []
    for n in range(layers):
        layer = f"{name}.layers.{n}"
        states = gru(
            weights,
            f"{layer}.recurrent",
            [layer_norm(weights, f"{layer}.recurrent_norm", x) for x in xs],
            first_states[n],
        )
        xs = [x + state for x, state in zip(xs, states, strict=True)]
        by_memory = {}
        for k in sorted(range(len(memories)), reverse=True):  # the reverse translation, then the source
            queries = [layer_norm(weights, f"{layer}.attention_norms.{k}", x) for x in xs]
            read = [attention(weights, f"{layer}.attentions.{k}", query, memories[k], heads) for query in queries]
            xs = [x + context for x, (context, _) in zip(xs, read, strict=True)]
            by_memory[k] = torch.stack([alpha for _, alpha in read])
        found.append([by_memory[k] for k in range(len(memories))])
        for j, x in enumerate(xs):
            hidden = linear(weights, f"{layer}.fc1", layer_norm(weights, f"{layer}.feed_forward_norm", x))
            xs[j] = x + linear(weights, f"{layer}.fc2", hidden.clamp(min=0))
    states = [layer_norm(weights, f"{name}.norm", x) for x in xs]
    logits = [embedding @ state + weights["decoder.output.bias"] for state in states]
    return torch.stack(logits), states, found


def backward_pass(weights, source: list[int], reverse_input: list[int], heads: int) -> tuple[Tensor, list[Tensor]]:
    """Logits (m, V) and the m states of the backward decoder over its input, the end symbol first."""
    memory, mean = encode(weights, source)
    logits, states, _ = decode(weights, "decoder.backward_decoder", mean, [memory], reverse_input, heads)
    return logits, states


def greedy_reverse(weights, source: list[int], limit: int, heads: int) -> list[int]:
    """The input tokens of the greedy pass from right to left; there is one state for each. See `reference_abd`."""
    tokens = [END]
    with torch.no_grad():
        while len(tokens) < limit:
            last = backward_pass(weights, source, tokens, heads)[0][-1].clone()
            last[PADDING] = -torch.inf
            choice = int(last.argmax())
            if choice == END:
                break
            tokens.append(choice)
    return tokens


def forward_pass(
    weights, source: list[int], reverse_states: list[Tensor] | None, target_input: list[int], heads: int
) -> tuple[Tensor, list[list[Tensor]]]:
    """Logits (m, V) and attention weights of the forward decoder, or of the decoder of `rnmt` if there are no
    `reverse_states`."""
    memory, mean = encode(weights, source)
    memories = [memory] if reverse_states is None else [memory, reverse_states]
    logits, _, found = decode(weights, "decoder", mean, memories, target_input, heads)
    return logits, found


def loss(
    weights,
    source: list[int],
    target: list[int],
    forward_weight: float,
    reverse: str,
    limit: int,
    label_smoothing: float,
    heads: int,
) -> Tensor:
    """forward_weight * forward + (1 - forward_weight) * backward, both smoothed, in nats, as in `reference_abd`."""
    assert reverse in REVERSE
    words, backwards = target[:-1], target[:-1][::-1]
    backward_logits, states = backward_pass(weights, source, [END, *backwards], heads)
    if reverse == "greedy":
        _, states = backward_pass(weights, source, greedy_reverse(weights, source, limit, heads), heads)
    forward_logits, _ = forward_pass(weights, source, states, [END, *words], heads)
    _, forward = nll_and_smoothed(forward_logits, [*words, END], label_smoothing)
    _, backward = nll_and_smoothed(backward_logits, [*backwards, END], label_smoothing)
    return forward_weight * forward + (1 - forward_weight) * backward
