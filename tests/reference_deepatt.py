"""A slow reference of DeepAtt and its relatives (Zhang, Xiong and Su, TPAMI 2018), for comparison.

One sentence pair, one layer, one attention, one head and one position at a time, in float64. There is no
batch, no padding and no mask: a sequence is a list of vectors. Everything is differentiable by torch autograd.
What the paper calls layer k is k here for the encoder (0..K); decoder layers and attentions count from 0.

    deepatt   K attentions inside one recurrent unit, the k-th over encoder layer k; eqs. 1-9
    udeepatt  the same, all encoder layers forward; eq. 14
    vdeepatt  K stacked decoder layers with one attention each, the k-th over encoder layer k; eqs. 10-12
    wideatt   one attention over the concatenation of the encoder layers; eq. 13
    deepnmt   K stacked decoder layers, only the first with an attention, over encoder layer K
    rnnsearch a bidirectional encoder layer and one attention over it; with heads, MHeadNMT
"""

import math

import torch

Tensor = torch.Tensor

VARIANTS = ("deepatt", "udeepatt", "vdeepatt", "wideatt", "deepnmt", "rnnsearch")


def linear(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """y = W x + b, x one vector."""
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def gru(weights: dict[str, Tensor], name: str, h: Tensor, x: Tensor) -> Tensor:
    """GRU(h, x); the reset gate acts on the state before the recurrent product:

    z = sigmoid(W_z x + b_z + U_z h), r = sigmoid(W_r x + b_r + U_r h), c = tanh(W_c x + b_c + U_c (r * h)),
    h' = (1 - z) * h + z * c. The rows of W, b and U are those of z, then r, then c.
    """
    size = len(h)
    from_x = linear(weights, f"{name}.input", x)
    recurrent = weights[f"{name}.recurrent"]
    z = torch.sigmoid(from_x[:size] + recurrent[:size] @ h)
    r = torch.sigmoid(from_x[size : 2 * size] + recurrent[size : 2 * size] @ h)
    c = torch.tanh(from_x[2 * size :] + recurrent[2 * size :] @ (r * h))
    return (1 - z) * h + z * c


def zero_state(weights: dict[str, Tensor], name: str) -> Tensor:
    """The zero vector as long as the state of cell `name`."""
    return torch.zeros(weights[f"{name}.recurrent"].shape[1], dtype=torch.float64)


def recurrent_layer(
    weights: dict[str, Tensor], name: str, xs: list[Tensor], lower: list[Tensor] | None, backward: bool
) -> list[Tensor]:
    """States h_1..h_n of the encoder layer with cells `name`.0 and, if there is a layer below, `name`.1.

    Without `lower` (layer 0, eq. 2): h_i = GRU(h_prev, x_i).
    With it (eqs. 1-3): h_i = GRU_higher(GRU_lower(h_prev, x_i), c_i), c_i = lower_i.
    h_prev is h_{i-1} or, backward, h_{i+1}; at the first step it is zero.
    """
    n = len(xs)
    h = zero_state(weights, f"{name}.0")
    states: dict[int, Tensor] = {}
    for i in range(n - 1, -1, -1) if backward else range(n):
        h = gru(weights, f"{name}.0", h, xs[i])
        if lower is not None:
            h = gru(weights, f"{name}.1", h, lower[i])
        states[i] = h
    return [states[i] for i in range(n)]


def encode(
    weights: dict[str, Tensor], variant: str, layers: int, source: list[int]
) -> tuple[list[list[Tensor]], Tensor]:
    """The memories that the decoder may attend to (each a list of n vectors), and the final state.

    deepatt, udeepatt, vdeepatt: H^1..H^K; deepnmt: H^K; wideatt: [H^1; ...; H^K] at each position (eq. 13);
    rnnsearch: [forward; backward] at each position. Layer k is forward if k is even (eq. 1), with udeepatt always
    (eq. 14). The final state is the last one computed in the top layer (rnnsearch: in the backward RNN).
    """
    xs = [weights["encoder.embedding.weight"][token] for token in source]
    n = len(xs)
    if variant == "rnnsearch":
        forward = recurrent_layer(weights, "encoder.forward_layer.cells", xs, None, backward=False)
        backward = recurrent_layer(weights, "encoder.backward_layer.cells", xs, None, backward=True)
        return [[torch.cat([forward[i], backward[i]]) for i in range(n)]], backward[0]
    stack = [recurrent_layer(weights, "encoder.layers.0.cells", xs, None, backward=False)]
    top_is_backward = False
    for k in range(1, layers + 1):
        top_is_backward = k % 2 == 1 and variant != "udeepatt"
        stack.append(recurrent_layer(weights, f"encoder.layers.{k}.cells", xs, stack[k - 1], top_is_backward))
    final = stack[layers][0] if top_is_backward else stack[layers][n - 1]
    if variant == "deepnmt":
        return [stack[layers]], final
    if variant == "wideatt":
        return [[torch.cat([stack[k][i] for k in range(1, layers + 1)]) for i in range(n)]], final
    return stack[1:], final


def attended(variant: str, layers: int) -> list[list[int]]:
    """For each decoder layer, the memory (its number in encode's list) that each of its attentions reads."""
    if variant in ("deepatt", "udeepatt"):
        return [list(range(layers))]
    if variant == "vdeepatt":
        return [[k] for k in range(layers)]
    if variant == "deepnmt":
        return [[0]] + [[] for _ in range(layers - 1)]
    return [[0]]


def additive_attention(
    weights: dict[str, Tensor], name: str, state: Tensor, memory: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Eq. 9: a = sum_i alpha_i h_i, alpha = softmax over i of v . tanh(W s + U h_i). Returns a and alpha (n)."""
    query, key, energy = weights[f"{name}.query.weight"], weights[f"{name}.key.weight"], weights[f"{name}.energy"]
    scores = [(energy * torch.tanh(query @ state + key @ h)).sum() for h in memory]
    alpha = torch.softmax(torch.stack(scores), dim=0)
    return sum(alpha[i] * memory[i] for i in range(len(memory))), alpha


def multi_head_attention(
    weights: dict[str, Tensor], name: str, state: Tensor, memory: list[Tensor], heads: int
) -> tuple[Tensor, Tensor]:
    """Scaled dot products, in each head p of size c = D / heads, with q = Q s, k_i = K h_i, v_i = V h_i:

    y_p = sum_i alpha_ip v_ip, alpha_p = softmax over i of q_p . k_ip / sqrt(c); a = O (y_1; ...; y_heads).
    Returns a and the mean of alpha over the heads (n).
    """
    query = weights[f"{name}.query.weight"] @ state
    keys = [weights[f"{name}.key.weight"] @ h for h in memory]
    values = [weights[f"{name}.value.weight"] @ h for h in memory]
    c = len(query) // heads
    mixed, alphas = [], []
    for p in range(heads):
        own = slice(p * c, (p + 1) * c)
        scores = [(query[own] * key[own]).sum() / math.sqrt(c) for key in keys]
        alpha = torch.softmax(torch.stack(scores), dim=0)
        mixed.append(sum(alpha[i] * values[i][own] for i in range(len(memory))))
        alphas.append(alpha)
    return weights[f"{name}.output.weight"] @ torch.cat(mixed), sum(alphas) / heads


def first_states(weights: dict[str, Tensor], final: Tensor, count: int) -> list[Tensor]:
    """s_0 of each decoder layer: the `count` equal parts of tanh(W final + b)."""
    joint = torch.tanh(linear(weights, "decoder.initial_state", final))
    size = len(joint) // count
    return [joint[k * size : (k + 1) * size] for k in range(count)]


def deepatt_reference(
    weights: dict[str, Tensor],
    variant: str,
    layers: int,
    heads: int,
    source: list[int],
    target_input: list[int],
) -> tuple[Tensor, list[Tensor]]:
    """Logits (m, V) of one sentence pair, and the weights (m, n) of each attention (of several heads, the mean).

    source: n token ids; target_input: m ids, the start symbol first; layers: K; heads: 0 for additive attention.
    At step j, from decoder layer 0 up, with x the previous token's embedding or the state of the layer below:

    s~_0 = GRU(s_{j-1}, x); for each attention of the layer a_k = Att(s~_{k-1}, memory), s~_k = GRU(s~_{k-1}, a_k);
    the last of them is s_j (eqs. 6-8; stacked, eqs. 10-12).
    logits_j = W_o tanh(W_r [x of layer 0; s_j of the top layer; all a in order] + b_r) + b_o.
    """
    if variant not in VARIANTS:
        raise ValueError(variant)
    weights = {name: weight.double() for name, weight in weights.items()}
    memories, final = encode(weights, variant, layers, source)
    plan = attended(variant, layers)
    previous = first_states(weights, final, len(plan))
    logits: list[Tensor] = []
    rows: list[list[Tensor]] = [[] for reads in plan for _ in reads]
    for token in target_input:
        embedding = weights["decoder.embedding.weight"][token]
        x = embedding
        current: list[Tensor] = []
        contexts: list[Tensor] = []
        for k, reads in enumerate(plan):
            name = f"decoder.layers.{k}"
            state = gru(weights, f"{name}.cells.0", previous[k], x)
            for i, number in enumerate(reads):
                if heads == 0:
                    a, alpha = additive_attention(weights, f"{name}.attentions.{i}", state, memories[number])
                else:
                    a, alpha = multi_head_attention(weights, f"{name}.attentions.{i}", state, memories[number], heads)
                rows[len(contexts)].append(alpha)
                contexts.append(a)
                state = gru(weights, f"{name}.cells.{i + 1}", state, a)
            current.append(state)
            x = state
        readout = torch.tanh(linear(weights, "decoder.readout.hidden", torch.cat([embedding, current[-1], *contexts])))
        logits.append(linear(weights, "decoder.output", readout))
        previous = current
    return torch.stack(logits), [torch.stack(alphas) for alphas in rows]
