"""The graphs of fairseq's Transformer: its encoder, and one step of its decoder.

Letters: B sentences, n width of the padded sources, K hypotheses of a sentence, H heads, e width of a head, d width of
the model. README.md in this folder defines inputs and outputs.
"""

from pathlib import Path
from typing import TypeVar

import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase, TransformerModelBase
from fairseq.modules import MultiheadAttention, SinusoidalPositionalEmbedding
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn

from .graphs import OutputLayer, Tensors, as_mask, attend, write_attention_graphs

Layer = TypeVar("Layer", TransformerEncoderLayerBase, TransformerDecoderLayerBase)


class Embedding(nn.Module):
    """The input of fairseq's encoder or decoder, for positions from 0."""

    def __init__(self, side: TransformerEncoderBase | TransformerDecoderBase, longest: int):
        super().__init__()
        self.side = side
        positions, first = side.embed_positions, side.padding_idx + 1
        if isinstance(positions, SinusoidalPositionalEmbedding):
            table = positions.get_embedding(first + longest, positions.embedding_dim)[first:]
        else:
            table = None if positions is None else positions.weight[first:]
        self.register_buffer("positions", table)
        self.positions: Tensor | None

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Return the embeddings (B, m, d) of tokens (B, m) at positions (m,) or ()."""
        x = self.side.embed_scale * self.side.embed_tokens(tokens)
        if self.positions is not None:
            x = x + self.positions[position]
        return x if self.side.layernorm_embedding is None else self.side.layernorm_embedding(x)


class EncoderGraph(nn.Module):
    """The keys and values, (B, H, n, e), of padded sources (B, n) that each layer of the decoder attends to."""

    def __init__(self, model: TransformerModelBase, longest: int):
        super().__init__()
        self.encoder, self.layers = model.encoder, model.decoder.layers
        self.embedding = Embedding(model.encoder, longest)

    def forward(self, source: Tensor) -> dict[str, Tensor]:
        x = self.embedding(source, torch.arange(source.size(1)))
        mask = as_mask(source.ne(self.encoder.padding_idx)[:, None])
        for layer in self.encoder.layers:
            y = before(layer, layer.self_attn_layer_norm, x)
            query, keys, values = projected(y, layer.self_attn)
            context = attend(query, [(keys, values)], mask)
            x = after(layer, layer.self_attn_layer_norm, x, layer.self_attn.out_proj(context.flatten(2)))
            x = feed_forward(layer, x)
        if self.encoder.layer_norm is not None:
            x = self.encoder.layer_norm(x)
        memory: dict[str, Tensor] = {}
        for i, layer in enumerate(self.layers):
            attention = layer.encoder_attn
            memory[f"memory_keys_{i}"] = heads_of(attention.k_proj(x), attention)
            memory[f"memory_values_{i}"] = heads_of(attention.v_proj(x), attention)
        return memory


class StepGraph(nn.Module):
    """One step of the decoder."""

    def __init__(self, model: TransformerModelBase, longest: int):
        super().__init__()
        self.decoder = model.decoder
        projection = model.decoder.output_projection
        self.output = OutputLayer(projection.weight, projection.bias, model.decoder.dictionary.eos())
        self.embedding = Embedding(model.decoder, longest)

    def forward(
        self, tokens: Tensor, length: Tensor, source: Tensor, visible: Tensor, memory: Tensors, cache: Tensors
    ) -> Tensors:
        decoder, beam = self.decoder, tokens.size(1)
        x = self.embedding(tokens, length)
        to_itself = torch.eye(beam, dtype=torch.bool).expand(tokens.size(0), -1, -1)
        to_target = as_mask(torch.cat([visible, to_itself], dim=2))
        to_source = as_mask(source.ne(decoder.padding_idx)[:, None])
        new: dict[str, Tensor] = {}
        for i, layer in enumerate(decoder.layers):
            y = before(layer, layer.self_attn_layer_norm, x)
            query, keys, values = projected(y, layer.self_attn)
            new |= {f"new_keys_{i}": keys, f"new_values_{i}": values}
            cached = cache[f"cache_keys_{i}"], cache[f"cache_values_{i}"]
            context = attend(query, [cached, (keys, values)], to_target)
            x = after(layer, layer.self_attn_layer_norm, x, layer.self_attn.out_proj(context.flatten(2)))

            attention = layer.encoder_attn
            query = heads_of(attention.q_proj(before(layer, layer.encoder_attn_layer_norm, x)), attention)
            context = attend(query, [(memory[f"memory_keys_{i}"], memory[f"memory_values_{i}"])], to_source)
            x = after(layer, layer.encoder_attn_layer_norm, x, attention.out_proj(context.flatten(2)))
            x = feed_forward(layer, x)
        if decoder.layer_norm is not None:
            x = decoder.layer_norm(x)
        return self.output(x) | new


def before(layer: Layer, norm: nn.Module, x: Tensor) -> Tensor:
    """Return the input of a sub-layer, which pre-norm normalizes."""
    return norm(x) if layer.normalize_before else x


def after(layer: Layer, norm: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Return the sum of a sub-layer's input x and its output y, which post-norm normalizes."""
    return x + y if layer.normalize_before else norm(x + y)


def feed_forward(layer: Layer, x: Tensor) -> Tensor:
    y = layer.fc1(before(layer, layer.final_layer_norm, x))
    return after(layer, layer.final_layer_norm, x, layer.fc2(layer.activation_fn(y)))


def projected(x: Tensor, attention: MultiheadAttention) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, (B, H, n, e) each, of x (B, n, d) in self-attention."""
    query, key, value = attention.q_proj(x), attention.k_proj(x), attention.v_proj(x)
    return heads_of(query, attention), heads_of(key, attention), heads_of(value, attention)


def heads_of(x: Tensor, attention: MultiheadAttention) -> Tensor:
    """Rearrange (B, n, d) to (B, H, n, e)."""
    return x.unflatten(2, (attention.num_heads, -1)).transpose(1, 2)


def write_graphs(model: TransformerModelBase, folder: Path) -> None:
    """Write `encoder.onnx` and `step.onnx` to a folder."""
    encoder = EncoderGraph(model, model.encoder.max_positions())
    step = StepGraph(model, model.decoder.max_positions())
    write_attention_graphs(encoder, step, model.decoder.dictionary.eos(), folder)
