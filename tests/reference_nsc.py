"""A slow reference of neural system combination (Zhou et al., ACL 2017), written as `reference_abd` is.

One sentence, one position at a time, in float64, without batch, padding or mask.
"""

import torch

from reference_abd import END, PADDING, annotate, decode, in_double
from reference_deepatt import additive_attention, gru, linear, recurrent_layer

Tensor = torch.Tensor


def part(weights: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The weights of a part of a model, under the names that they have in it."""
    return {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}


def run_first_model(weights: dict[str, Tensor], source: list[int], tokens: list[int]) -> tuple[Tensor, list[Tensor]]:
    """Logits (m, V) and states of RNNSearch from right to left, of the input tokens, the end symbol first."""
    own = in_double(part(weights, "reverse_model"))
    annotations, _, backward_first = annotate(own, source)
    logits, states, _ = decode(own, "decoder", backward_first, [annotations], tokens)
    return logits, states


def best_translation(weights: dict[str, Tensor], source: list[int], limit: int) -> list[int]:
    """The words of the likeliest translation of one to `limit` - 1 words, of all that there are, then the end."""
    types = len(weights["reverse_model.decoder.output.bias"])
    words = [word for word in range(types) if word not in (PADDING, END)]
    best, best_score = [], -torch.inf
    begun = [([], 0.0)]
    for length in range(limit):
        longer = []
        for known, score in begun:
            log_p = run_first_model(weights, source, [END, *known])[0][-1]
            log_p = log_p.masked_fill(torch.arange(types).eq(PADDING), -torch.inf).log_softmax(0)
            ended = score + log_p[END].item()
            if length and ended > best_score:
                best, best_score = [*known, END], ended
            longer += [([*known, word], score + log_p[word].item()) for word in words]
        begun = longer
    return best


def combine(
    weights: dict[str, Tensor], final: Tensor, memories: list[list[Tensor]], tokens: list[int]
) -> tuple[Tensor, list[Tensor]]:
    """The decoder of `nsc_rt` over its input tokens: logits (m, V), and each attention's weights.

    At each step, with e the embedding of the input token and s' the last state: s~ = GRU_0(s', e);
    a_k = Att_k(s~, memory k); a = Att(s~, [a_0, a_1]); s = GRU_1(s~, a); logits = W_o tanh(W_r [e; s; a] + b_r) + b_o.
    """
    state = torch.tanh(linear(weights, "decoder.initial_state", final))
    logits, rows = [], [[] for _ in memories]
    for token in tokens:
        embedding = weights["decoder.embedding.weight"][token]
        query = gru(weights, "decoder.layers.0.cells.0", state, embedding)
        contexts = []
        for k, memory in enumerate(memories):
            context, alpha = additive_attention(weights, f"decoder.layers.0.attentions.{k}", query, memory)
            contexts.append(context)
            rows[k].append(alpha)
        context, _ = additive_attention(weights, "decoder.layers.0.combination", query, contexts)
        state = gru(weights, "decoder.layers.0.cells.1", query, context)
        readout = torch.tanh(linear(weights, "decoder.readout.hidden", torch.cat([embedding, state, context])))
        logits.append(linear(weights, "decoder.output", readout))
    return torch.stack(logits), [torch.stack(alphas) for alphas in rows]


def words_model(
    weights: dict[str, Tensor], source: list[int], reverse: list[int], target_input: list[int]
) -> tuple[Tensor, list[Tensor]]:
    """`nsc_rt`, given the reverse translation, the end included: logits (m, V), and the weights of both attentions."""
    weights = in_double(weights)
    annotations, _, backward_first = annotate(weights, source)
    xs = [weights["encoder.words_embedding.weight"][token] for token in reverse]
    forward = recurrent_layer(weights, "encoder.words.forward_layer.cells", xs, None, backward=False)
    backward = recurrent_layer(weights, "encoder.words.backward_layer.cells", xs, None, backward=True)
    words = [torch.cat(both) for both in zip(forward, backward, strict=True)]
    return combine(weights, backward_first, [annotations, words], target_input)


def states_model(
    weights: dict[str, Tensor], source: list[int], reverse: list[int], target_input: list[int]
) -> tuple[Tensor, list[Tensor]]:
    """`nsc_hs`, as `words_model`: the first model's encoder and embeddings, and ABD's forward decoder."""
    _, states = run_first_model(weights, source, [END, *reverse[:-1]])
    weights = in_double(weights)
    annotations, _, backward_first = annotate(part(weights, "reverse_model"), source)
    shared = {**weights, "decoder.embedding.weight": weights["reverse_model.decoder.embedding.weight"]}
    logits, _, alphas = decode(shared, "decoder", backward_first, [annotations, states], target_input)
    return logits, alphas
