"""A slow reference of the layer-wise coordinated Transformer (He et al., NeurIPS 2018), for comparison.

One sentence pair, one layer, one head and one position at a time, in float64. There is no batch, no
padding and no mask: the keys of a position are a list. Everything is differentiable by torch autograd.
"Stream" is the concatenation of n source tokens (positions 0..n-1) and m target tokens (n..n+m-1).
A layer may have a window (Fonollosa et al., 2019) of a number of tokens; None is no window.

Ablations: no side embedding, no position embedding, unshared layers (each side has its own), separate
attention (target self-attention, then source attention, in place of mixed attention).
"""

import math

import torch

Tensor = torch.Tensor


def visible(i: int, n: int, m: int, window: int | None = None) -> list[int]:
    """Keys that stream position i sees.

    Eq. 3, where target token t is stream position i = n + t: M(t, j) = 0 if j < n or j <= t + n, otherwise
    -inf. A source token sees all source tokens and no target token.

    With a window of k, source token i sees the source tokens from i - floor(k/2) to i + ceil(k/2) - 1, and target
    token t sees all source tokens and target tokens t - k + 1 to t.
    """
    if not 0 <= i < n + m:
        raise IndexError(i)
    if window is None:
        return [j for j in range(n + m) if j < n or j <= i]
    if i < n:
        return [j for j in range(i - math.floor(window / 2), i + math.ceil(window / 2)) if 0 <= j < n]
    return [*range(n), *(j for j in range(i - window + 1, i + 1) if j >= n)]


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


def embed(
    weights: dict[str, Tensor],
    source: list[int],
    target_input: list[int],
    with_sides: bool = True,
    with_positions: bool = True,
) -> list[Tensor]:
    """x = sqrt(d) * (E_token + S_side) + P_position for each token; positions restart at 0 for the target.

    S or P, or both, may be left out.
    """
    tokens = weights["embedding.tokens.weight"]
    d = tokens.shape[1]
    stream = []
    for side, sentence in enumerate((source, target_input)):
        for position, token in enumerate(sentence):
            x = tokens[token]
            if with_sides:
                x = x + weights["embedding.sides.weight"][side]
            x = math.sqrt(d) * x
            if with_positions:
                x = x + position_embedding(position, d)
            stream.append(x)
    return stream


def project(weights: dict[str, Tensor], name: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(q; k; v) = W_qkv x + b_qkv of one position."""
    d = len(x)
    qkv = linear(weights, f"{name}.qkv", x)
    return qkv[:d], qkv[d : 2 * d], qkv[2 * d :]


def shares(query: Tensor, keys: list[Tensor], heads: int) -> Tensor:
    """How one position divides its attention among all the given keys, eq. 1, (H, number of keys), c = d/H:

    a_j = softmax over j of q_h . k_jh / sqrt(c), in each head h of size c.
    """
    c = len(query) // heads
    rows = []
    for h in range(heads):
        own = slice(h * c, (h + 1) * c)
        scores = [(query[own] * key[own]).sum() / math.sqrt(c) for key in keys]
        rows.append(log_softmax(torch.stack(scores)).exp())
    return torch.stack(rows)


def attend(
    weights: dict[str, Tensor], name: str, query: Tensor, keys: list[Tensor], values: list[Tensor], heads: int
) -> Tensor:
    """The attention of one position to all the given keys, eq. 1, in each head h of size c = d/H:

    y_h = sum_j a_j v_jh, output = W_out (y_1; ...; y_H) + b_out.
    """
    c = len(query) // heads
    mixed = []
    for h, row in enumerate(shares(query, keys, heads)):
        own = slice(h * c, (h + 1) * c)
        mixed.append(sum(share * value[own] for share, value in zip(row, values, strict=True)))
    return linear(weights, f"{name}.out", torch.cat(mixed))


def attention(
    weights: dict[str, Tensor], name: str, xs: list[Tensor], n: int, heads: int, window: int | None
) -> list[Tensor]:
    """Mixed attention, eqs. 1 and 3: output_i = attention of q_i to k_j, v_j for j in visible(i).

    Where xs holds the n source positions only, it is the self-attention of the source; with n = 0 it is the
    self-attention of the target, whose position t sees the positions up to and including t.
    """
    queries, keys, values = zip(*(project(weights, name, x) for x in xs), strict=True)
    outputs = []
    for i in range(len(xs)):
        seen = visible(i, n, len(xs) - n, window)
        outputs.append(attend(weights, name, queries[i], [keys[j] for j in seen], [values[j] for j in seen], heads))
    return outputs


def source_attention(
    weights: dict[str, Tensor], name: str, source: list[Tensor], xs: list[Tensor], heads: int
) -> list[Tensor]:
    """output_t = attention of q_t to k_j, v_j for all source positions j, q_t projected from target state t."""
    _, keys, values = zip(*(project(weights, name, x) for x in source), strict=True)
    return [attend(weights, name, project(weights, name, x)[0], keys, values, heads) for x in xs]


def ffn(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Eq. 2: FFN(x) = W_2 max(0, W_1 x + b_1) + b_2."""
    return linear(weights, f"{name}.fc2", linear(weights, f"{name}.fc1", x).clamp(min=0))


def layer(
    weights: dict[str, Tensor],
    name: str,
    xs: list[Tensor],
    n: int,
    heads: int,
    pre_norm: bool,
    alpha: float,
    window: int | None,
) -> list[Tensor]:
    """The outputs of one layer at all stream positions, from those of the layer below; the same weights
    serve both sides. With f the attention, then the FFN:

    pre-norm: x <- x + f(LN(x)); post-norm: x <- LN(alpha x + f(x)).
    """
    norm1, norm2 = f"{name}.attention_norm", f"{name}.ffn_norm"
    if pre_norm:
        ys = attention(weights, f"{name}.attention", [layer_norm(weights, norm1, x) for x in xs], n, heads, window)
        xs = [x + y for x, y in zip(xs, ys, strict=True)]
        return [x + ffn(weights, name, layer_norm(weights, norm2, x)) for x in xs]
    ys = attention(weights, f"{name}.attention", xs, n, heads, window)
    xs = [layer_norm(weights, norm1, alpha * x + y) for x, y in zip(xs, ys, strict=True)]
    return [layer_norm(weights, norm2, alpha * x + ffn(weights, name, x)) for x in xs]


def separate_layer(
    weights: dict[str, Tensor],
    name: str,
    source: list[Tensor],
    xs: list[Tensor],
    heads: int,
    pre_norm: bool,
    alpha: float,
    window: int | None,
) -> list[Tensor]:
    """The outputs of one layer at the target positions with the attentions one after the other.

    With f the self-attention over the target, then the source attention, then the FFN:
    pre-norm: x <- x + f(LN(x)); post-norm: x <- LN(alpha x + f(x)). Both attentions have the same weights and the
    same norm, and with pre-norm the source states pass that norm too before they become keys and values.
    """
    att, norm1, norm2 = f"{name}.attention", f"{name}.attention_norm", f"{name}.ffn_norm"
    if pre_norm:
        source = [layer_norm(weights, norm1, x) for x in source]
        ys = attention(weights, att, [layer_norm(weights, norm1, x) for x in xs], 0, heads, window)
        xs = [x + y for x, y in zip(xs, ys, strict=True)]
        ys = source_attention(weights, att, source, [layer_norm(weights, norm1, x) for x in xs], heads)
        xs = [x + y for x, y in zip(xs, ys, strict=True)]
        return [x + ffn(weights, name, layer_norm(weights, norm2, x)) for x in xs]
    ys = attention(weights, att, xs, 0, heads, window)
    xs = [layer_norm(weights, norm1, alpha * x + y) for x, y in zip(xs, ys, strict=True)]
    ys = source_attention(weights, att, source, xs, heads)
    xs = [layer_norm(weights, norm1, alpha * x + y) for x, y in zip(xs, ys, strict=True)]
    return [layer_norm(weights, norm2, alpha * x + ffn(weights, name, x)) for x in xs]


def target_layer(
    weights: dict[str, Tensor],
    name: str,
    source: list[Tensor],
    xs: list[Tensor],
    heads: int,
    pre_norm: bool,
    alpha: float,
    window: int | None,
    separate: bool,
) -> list[Tensor]:
    """The outputs of one layer at the target positions, from the target states xs of the layer below and the
    source states that the layer attends to. Mixed: those of the stream (source, xs), its source part left out.
    """
    if separate:
        return separate_layer(weights, name, source, xs, heads, pre_norm, alpha, window)
    return layer(weights, name, source + xs, len(source), heads, pre_norm, alpha, window)[len(source) :]


def lwc_logits(
    weights: dict[str, Tensor],
    source: list[int],
    target_input: list[int],
    *,
    layers: int,
    heads: int,
    pre_norm: bool,
    alpha: float = 1.0,
    side_embedding: bool = True,
    position_embedding: bool = True,
    unshared: bool = False,
    separate: bool = False,
    windows: list[int] | None = None,
) -> Tensor:
    """Logits (m, V) of one sentence pair: E x at each target position, E the token embedding.

    source: n token ids, the end of sentence last; target_input: m ids, the start symbol first. With pre-norm
    a last layer norm is applied to the output of the last layer. With h^i and x^i the source and target
    states after layer i, h^0 and x^0 the embeddings:

    shared: h^i = Layer_i(h^{i-1}), x^i = Layer_i(x^{i-1}; h^{i-1});
    unshared: h^i = SourceLayer_i(h^{i-1}), x^i = Layer_i(x^{i-1}; h^i), `layers` of each.
    """
    n = len(source)
    stream = embed(weights, source, target_input, side_embedding, position_embedding)
    hs, xs = stream[:n], stream[n:]
    for i in range(layers):
        name = f"source_layers.{i}" if unshared else f"layers.{i}"
        window = windows[i] if windows else None
        below, hs = hs, layer(weights, name, hs, n, heads, pre_norm, alpha, window)
        seen = hs if unshared else below
        xs = target_layer(weights, f"layers.{i}", seen, xs, heads, pre_norm, alpha, window, separate)
    if pre_norm:
        xs = [layer_norm(weights, "norm", x) for x in xs]
    return torch.stack([weights["embedding.tokens.weight"] @ x for x in xs])


def lwc_loss(
    weights: dict[str, Tensor],
    pairs: list[tuple[list[int], list[int], list[int]]],
    *,
    layers: int,
    heads: int,
    pre_norm: bool,
    alpha: float = 1.0,
    label_smoothing: float = 0.0,
    side_embedding: bool = True,
    position_embedding: bool = True,
    unshared: bool = False,
    separate: bool = False,
    windows: list[int] | None = None,
) -> Tensor:
    """Sum over the sentences (source, target_input, target) and their target positions t of

    (1 - eps - e) * -log p(y_t) + e * sum_{v in V} -log p(v), e = eps / (V - 1), eps = label_smoothing.
    """
    total = torch.zeros((), dtype=torch.float64)
    for source, target_input, target in pairs:
        logits = lwc_logits(
            weights,
            source,
            target_input,
            layers=layers,
            heads=heads,
            pre_norm=pre_norm,
            alpha=alpha,
            side_embedding=side_embedding,
            position_embedding=position_embedding,
            unshared=unshared,
            separate=separate,
            windows=windows,
        )
        for scores, token in zip(logits, target, strict=True):
            log_p = log_softmax(scores)
            e = label_smoothing / (len(log_p) - 1)
            total = total - (1 - label_smoothing - e) * log_p[token] - e * log_p.sum()
    return total
