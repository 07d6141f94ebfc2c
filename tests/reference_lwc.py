"""A slow reference of the layer-wise coordinated Transformer (He et al., NeurIPS 2018), for comparison.

One sentence pair, one layer, one head and one position at a time, in float64. There is no batch, no
padding and no mask: the keys of a position are a list. Everything is differentiable by torch autograd.
"Stream" is the concatenation of n source tokens (positions 0..n-1) and m target tokens (n..n+m-1).
"""

import math

import torch

Tensor = torch.Tensor


def visible(i: int, n: int, m: int) -> list[int]:
    """Keys that stream position i sees.

    Eq. 3, where target token t is stream position i = n + t: M(t, j) = 0 if j < n or j <= t + n, otherwise
    -inf. A source token sees all source tokens and no target token.
    """
    if not 0 <= i < n + m:
        raise IndexError(i)
    return [j for j in range(n + m) if j < n or j <= i]


def linear(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """y = W x + b, x one vector."""
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def layer_norm(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """y = w * (x - mean) / sqrt(var + 1e-5) + b, var = mean((x - mean)^2), over one vector x."""
    mean = x.sum() / len(x)
    variance = ((x - mean) ** 2).sum() / len(x)
    return weights[f"{name}.weight"] * (x - mean) / (variance + 1e-5).sqrt() + weights[f"{name}.bias"]


def log_softmax(scores: Tensor) -> Tensor:
    """log p_k = s_k - log sum_j exp(s_j); the largest score is taken off first, which changes nothing."""
    scores = scores - scores.max().detach()
    return scores - scores.exp().sum().log()


def position_embedding(position: int, d: int) -> Tensor:
    """P[pos, 2i] = sin(pos / 10000^(2i/d)), P[pos, 2i+1] = cos(pos / 10000^(2i/d))."""
    values = []
    for k in range(d):
        angle = position / 10000 ** (2 * (k // 2) / d)
        values.append(math.sin(angle) if k % 2 == 0 else math.cos(angle))
    return torch.tensor(values, dtype=torch.float64)


def embed(weights: dict[str, Tensor], source: list[int], target_input: list[int]) -> list[Tensor]:
    """x = sqrt(d) * (E_token + S_side) + P_position for each token; positions restart at 0 for the target."""
    tokens, sides = weights["embedding.tokens.weight"], weights["embedding.sides.weight"]
    d = tokens.shape[1]
    stream = []
    for side, sentence in enumerate((source, target_input)):
        for position, token in enumerate(sentence):
            stream.append(math.sqrt(d) * (tokens[token] + sides[side]) + position_embedding(position, d))
    return stream


def attention(weights: dict[str, Tensor], name: str, xs: list[Tensor], n: int, heads: int) -> list[Tensor]:
    """Mixed attention, eqs. 1 and 3, in each head h of size c = d/H:

    y_ih = sum_{j in visible(i)} a_ij v_jh, a_ij = softmax over j in visible(i) of q_ih . k_jh / sqrt(c),
    output_i = W_out (y_i1; ...; y_iH) + b_out, where (q; k; v)_i = W_qkv x_i + b_qkv.
    """
    d = len(xs[0])
    c = d // heads
    queries, keys, values = [], [], []
    for x in xs:
        qkv = linear(weights, f"{name}.qkv", x)
        queries.append(qkv[:d])
        keys.append(qkv[d : 2 * d])
        values.append(qkv[2 * d :])
    outputs = []
    for i in range(len(xs)):
        seen = visible(i, n, len(xs) - n)
        mixed = []
        for h in range(heads):
            own = slice(h * c, (h + 1) * c)
            scores = [(queries[i][own] * keys[j][own]).sum() / math.sqrt(c) for j in seen]
            shares = log_softmax(torch.stack(scores)).exp()
            mixed.append(sum(share * values[j][own] for share, j in zip(shares, seen, strict=True)))
        outputs.append(linear(weights, f"{name}.out", torch.cat(mixed)))
    return outputs


def ffn(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Eq. 2: FFN(x) = W_2 max(0, W_1 x + b_1) + b_2."""
    return linear(weights, f"{name}.fc2", linear(weights, f"{name}.fc1", x).clamp(min=0))


def layer(weights: dict[str, Tensor], name: str, xs: list[Tensor], n: int, heads: int, pre_norm: bool) -> list[Tensor]:
    """The outputs of one layer at all stream positions, from those of the layer below; the same weights
    serve both sides. With f the attention, then the FFN:

    pre-norm: x <- x + f(LN(x)); post-norm: x <- LN(x + f(x)).
    """
    norm1, norm2 = f"{name}.attention_norm", f"{name}.ffn_norm"
    if pre_norm:
        ys = attention(weights, f"{name}.attention", [layer_norm(weights, norm1, x) for x in xs], n, heads)
        xs = [x + y for x, y in zip(xs, ys, strict=True)]
        return [x + ffn(weights, name, layer_norm(weights, norm2, x)) for x in xs]
    ys = attention(weights, f"{name}.attention", xs, n, heads)
    xs = [layer_norm(weights, norm1, x + y) for x, y in zip(xs, ys, strict=True)]
    return [layer_norm(weights, norm2, x + ffn(weights, name, x)) for x in xs]


def lwc_logits(
    weights: dict[str, Tensor],
    source: list[int],
    target_input: list[int],
    *,
    layers: int,
    heads: int,
    pre_norm: bool,
) -> Tensor:
    """Logits (m, V) of one sentence pair: E x at each target position, E the token embedding.

    source: n token ids, the end of sentence last; target_input: m ids, the start symbol first. With pre-norm
    a last layer norm is applied to the output of the last layer.
    """
    xs = embed(weights, source, target_input)
    for i in range(layers):
        xs = layer(weights, f"layers.{i}", xs, len(source), heads, pre_norm)
    if pre_norm:
        xs = [layer_norm(weights, "norm", x) for x in xs]
    return torch.stack([weights["embedding.tokens.weight"] @ x for x in xs[len(source) :]])


def lwc_loss(
    weights: dict[str, Tensor],
    pairs: list[tuple[list[int], list[int], list[int]]],
    *,
    layers: int,
    heads: int,
    pre_norm: bool,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Sum over the sentences (source, target_input, target) and their target positions t of

    (1 - eps - e) * -log p(y_t) + e * sum_{v in V} -log p(v), e = eps / (V - 1), eps = label_smoothing.
    """
    total = torch.zeros((), dtype=torch.float64)
    for source, target_input, target in pairs:
        logits = lwc_logits(weights, source, target_input, layers=layers, heads=heads, pre_norm=pre_norm)
        for scores, token in zip(logits, target, strict=True):
            log_p = log_softmax(scores)
            e = label_smoothing / (len(log_p) - 1)
            total = total - (1 - label_smoothing - e) * log_p[token] - e * log_p.sum()
    return total
