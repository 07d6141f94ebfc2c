"""A slow float64 reference of `abd_lwc`: one shared LWC stack, a backward and a forward target. No dropout.
One sentence pair, one position and one head at a time; no batch, no padding, no mask: keys are listed.
Segments: source, reversed, found, forward; the states of a segment are a matrix (length, d). The weights are a
dict named as in reference_lwc.py; only embedding.sides.weight has three rows (source, backward, forward)."""

import math

import torch
from torch.nn.functional import layer_norm, linear

Tensor = torch.Tensor
SIDE = {"source": 0, "reversed": 1, "found": 1, "forward": 2}


def visible(segment: str, i: int, lengths: dict[str, int], window: int | None) -> list[tuple[str, int]]:
    """The keys of token i of a segment; w is the window, None for no window.
    source:          source j with i - floor(w/2) <= j <= i + ceil(w/2) - 1 (w = 2k+1: |i - j| <= k);
    reversed, found: the whole source, own j with i - w < j <= i;
    forward:         the whole source, the whole of found, own j with i - w < j <= i."""
    keys = [("source", j) for j in range(lengths["source"])]
    if segment == "source":
        return [(s, j) for s, j in keys if window is None or i - window // 2 <= j < i + (window + 1) // 2]
    if segment == "forward":
        keys += [("found", j) for j in range(lengths["found"])]
    return keys + [(segment, j) for j in range(i + 1) if window is None or j > i - window]


def embed(weights: dict[str, Tensor], segment: str, tokens: list[int]) -> Tensor:
    """x_i = sqrt(d) (E[token] + S[side]) + P[i], i from 0 in each segment.
    P[i, 2k] = sin(i / 10000^(2k/d)), P[i, 2k+1] = cos(i / 10000^(2k/d))."""
    table, side = weights["embedding.tokens.weight"], weights["embedding.sides.weight"][SIDE[segment]]
    d, xs = table.shape[1], []
    for i, token in enumerate(tokens):
        position = [(math.cos if k % 2 else math.sin)(i / 10000 ** (2 * (k // 2) / d)) for k in range(d)]
        x = math.sqrt(d) * (table[token] + side)
        xs.append(x + torch.tensor(position, dtype=torch.float64))
    return torch.stack(xs)


def apply(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """W x + b, or for a norm w (x - mean) / sqrt(variance + 1e-5) + b, at each position."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return layer_norm(x, weight.shape, weight, bias, 1e-5) if name.endswith("norm") else linear(x, weight, bias)


def attention(weights: dict[str, Tensor], name: str, states: dict, heads: int, window: int | None) -> dict:
    """(q; k; v) = W_qkv x + b_qkv; in head h of size c = d/H, over ALL keys j that i sees, in one softmax:
    a_j = softmax_j(q_ih . k_jh / sqrt(c)), y_ih = sum_j a_j v_jh; output_i = W_out (y_i1; ...; y_iH) + b_out."""
    qkv = {s: apply(weights, f"{name}.qkv", xs) for s, xs in states.items()}
    lengths, outputs = {s: len(xs) for s, xs in states.items()}, {s: [] for s in states}
    for s in states:
        for i in range(lengths[s]):
            query = qkv[s][i].chunk(3)[0].chunk(heads)
            _, keys, values = torch.stack([qkv[t][j] for t, j in visible(s, i, lengths, window)]).chunk(3, 1)
            mixed = []
            for q, k, v in zip(query, keys.chunk(heads, 1), values.chunk(heads, 1), strict=True):
                mixed.append(torch.softmax(k @ q / math.sqrt(len(q)), 0) @ v)
            outputs[s].append(apply(weights, f"{name}.out", torch.cat(mixed)))
    return {s: torch.stack(rows) for s, rows in outputs.items()}


def logits(
    weights: dict[str, Tensor],
    segments: dict[str, list[int]],
    *,
    layers: int,
    heads: int,
    pre_norm: bool,
    alpha: float = 1.0,
    windows: list | None = None,
) -> dict[str, Tensor]:
    """E x (length, V) for every segment, the source too. Each layer has f = attention, then f = FFN:
    pre-norm: x <- x + f(LN(x)), and one last layer norm; post-norm: x <- LN(alpha x + f(x)), and no last norm;
    FFN(x) = W_2 max(0, W_1 x + b_1) + b_2."""
    states = {s: embed(weights, s, tokens) for s, tokens in segments.items()}
    for n in range(layers):
        name, window = f"layers.{n}", windows[n] if windows else None
        for part in ("attention", "ffn"):
            ln = f"{name}.{part}_norm"
            ins = {s: apply(weights, ln, x) if pre_norm else x for s, x in states.items()}
            if part == "attention":
                out = attention(weights, f"{name}.attention", ins, heads, window)
            else:
                out = {s: apply(weights, f"{name}.fc1", x).relu() for s, x in ins.items()}
                out = {s: apply(weights, f"{name}.fc2", x) for s, x in out.items()}
            states = {s: x + out[s] if pre_norm else apply(weights, ln, alpha * x + out[s]) for s, x in states.items()}
    last = {s: apply(weights, "norm", x) if pre_norm else x for s, x in states.items()}
    return {s: x @ weights["embedding.tokens.weight"].T for s, x in last.items()}


def forward(weights, source, reversed_input, found, forward_input, **config) -> tuple[Tensor, Tensor]:
    """(backward logits over reversed_input, forward logits over forward_input). Nobody else sees reversed_input."""
    segments = {"source": source, "reversed": reversed_input, "found": found, "forward": forward_input}
    out = logits(weights, segments, **config)
    return out["reversed"], out["forward"]


def bidirectional_loss(forward_logits, forward_target, backward_logits, backward_target, lam, label_smoothing):
    """lam L(forward) + (1 - lam) L(backward). L, as fairseq's, is a sum over tokens y (not a mean, no padding) of
    (1 - eps - e) * -log p(y) + e * sum_{v in V} -log p(v), e = eps / (V - 1)."""
    total = 0.0
    for factor, scores, target in ((lam, forward_logits, forward_target), (1 - lam, backward_logits, backward_target)):
        for row, token in zip(scores, target, strict=True):
            log_p, e = torch.log_softmax(row, 0), label_smoothing / (len(row) - 1)
            total = total - factor * ((1 - label_smoothing - e) * log_p[token] + e * log_p.sum())
    return total


def greedy_backward(weights, source, max_length, eos, pad, **config) -> list[int]:
    """b_1 = eos, b_t+1 = argmax p(. | b_1..t, x) without pad, until eos is found; after
    max_length tokens (both eos not counted) eos is forced. Both eos are returned; an empty target is allowed."""
    found = [eos]
    while len(found) <= max_length:
        row = logits(weights, {"source": source, "reversed": found}, **config)["reversed"][-1].detach().clone()
        row[pad] = -math.inf
        found.append(int(row.argmax()))
        if found[-1] == eos:
            return found
    return [*found, eos]
