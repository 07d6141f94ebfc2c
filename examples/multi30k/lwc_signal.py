r"""Measure what reaches the layers of an LWC Transformer: states, gradients, and attention to source and target.

    python examples/multi30k/lwc_signal.py CHECKPOINT --data runs/multi30k/data --out signal.png

The model is measured at the start of training (the same flags with other random weights) and as trained, on the first
sentences of the validation set, without dropout. The picture plots over the layers, and the table that is printed
contains:

- state: root mean square (RMS) of a layer's output.
- change: RMS of the difference between a layer's output and its input, divided by the RMS of its input.
- gradient: RMS of the gradient of the loss with respect to a layer's output. The loss is the mean cross entropy of the
  target tokens, in nats.
- share of the source: the sum of a target token's attention weights over the source tokens, by head.
- attended tokens: e to the power of the entropy of a target token's attention weights, normalised within the source
  and within the target, as a mean over tokens and heads. Equal weights give the number of tokens.

The first three are measured for source tokens and for target tokens.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.tasks import FairseqTask
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from lwc_fairseq.data.packing import Packing
from lwc_fairseq.files import make_place
from lwc_fairseq.models.interface import BidirectionalModel
from lwc_fairseq.models.lwc_transformer import LWCTransformerModel
from lwc_fairseq.tasks.concat_translation import ConcatTranslationTask
from lwc_fairseq_compat import UserError

SIDES = ("source", "target")


@dataclass(frozen=True)
class Signal:
    """The measurements of a model, for N layers, the lowest first."""

    state: Tensor  # (2, N), source and target tokens
    change: Tensor  # (2, N)
    gradient: Tensor  # (2, N)
    share: Tensor  # (H, N)
    attended: Tensor  # (2, N)


def measure(model: LWCTransformerModel, sample: dict, padding: int) -> Signal:
    """Measure a model on a batch."""
    model.eval()
    state, change, gradient = measure_stream(model, sample, padding)
    share, attended = measure_attention(model, sample, padding)
    return Signal(state, change, gradient, share, attended)


def measure_stream(model: LWCTransformerModel, sample: dict, padding: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return state, change and gradient, (2, N) each."""
    stack, packing = model.encoder.stack, Packing(**sample["net_input"]["packing"])
    x = stack.embedding(packing.tokens, packing.sides, packing.positions)
    inputs, outputs = [], []
    # In training, the last layer computes only the target.
    for layer, attend in zip(stack.layers, stack.packed_attentions(packing), strict=True):
        inputs.append(x)
        x = layer(x, attend)
        x.retain_grad()
        outputs.append(x)
    logits = model.decoder.output_layer(stack.norm(x)[packing.target_rows])
    nn.functional.cross_entropy(
        logits, sample["target"].flatten()[packing.target_slots], ignore_index=padding
    ).backward()

    on_target = packing.sides.bool()
    masks = [~on_target, on_target]
    state = by_side(outputs, masks)
    change = by_side([y - x for x, y in zip(inputs, outputs, strict=True)], masks) / by_side(inputs, masks)
    return state, change, by_side([y.grad for y in outputs], masks)


def by_side(tensors: list[Tensor], masks: list[Tensor]) -> Tensor:
    """Return the RMS of N tensors (T, d) over the tokens of each mask (T), as (2, N)."""
    return torch.tensor([[x[mask].square().mean().sqrt().item() for x in tensors] for mask in masks])


@torch.no_grad()
def measure_attention(model: LWCTransformerModel, sample: dict, padding: int) -> tuple[Tensor, Tensor]:
    """Return the share of the source, (H, N), and the attended tokens, (2, N)."""
    inputs = sample["net_input"]
    weights = model.attention(inputs["src_tokens"], inputs["prev_output_tokens"])
    real = sample["target"].ne(padding)
    share = [layer.sum(-1).transpose(1, 2)[real].mean(0) for layer in weights.source]
    attended = [[count_attended(layer, real) for layer in side] for side in (weights.source, weights.target)]
    return torch.stack(share, dim=1), torch.tensor(attended)


def count_attended(weights: Tensor, real: Tensor) -> float:
    """Return e to the power of the mean entropy of normalised weights (B, H, m, n) over the real steps (B, m).

    Steps of a head whose weights are all zero, to machine precision, do not count.
    """
    entropy = torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1)
    return entropy.transpose(1, 2)[real].nanmean().exp().item()


def read(checkpoint: str, data: str, sentences: int) -> tuple[LWCTransformerModel, LWCTransformerModel, dict, int]:
    """Return a new model, the trained model, a batch of the validation set, and the index of padding.

    Raises UserError if a path does not exist, or the checkpoint is of another kind.
    """
    for path in (checkpoint, data):
        if not Path(path).exists():
            raise UserError(f"{path}: no such file or folder")
    (trained,), cfg, task = load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    if not isinstance(trained, LWCTransformerModel) or isinstance(trained, BidirectionalModel):
        raise UserError(f"{checkpoint}: a {type(trained).__name__}: give a checkpoint of an LWC Transformer")
    if not isinstance(task, ConcatTranslationTask) or cfg.model.unshared_weights:
        raise UserError(f"{checkpoint}: give a checkpoint of --task concat_translation, without --unshared-weights")
    return task.build_model(cfg.model), trained, first_sentences(task, sentences), task.target_dictionary.pad()


def first_sentences(task: FairseqTask, sentences: int) -> dict:
    task.load_dataset("valid")
    dataset = task.dataset("valid")
    return dataset.collater([dataset[i] for i in range(min(sentences, len(dataset)))])


def print_table(signals: dict[str, Signal]) -> None:
    print("model\tlayer\t" + "\t".join(name for name, _ in columns(next(iter(signals.values())))))
    for title, signal in signals.items():
        for layer in range(signal.state.size(1)):
            values = "\t".join(f"{line[layer]:.3g}" for _, line in columns(signal))
            print(f"{title}\t{layer + 1}\t{values}")


def columns(signal: Signal) -> list[tuple[str, Tensor]]:
    """Return the title and the values, (N,), of each column of the table."""
    by_side = [
        (f"{name} {side}", line)
        for name in ("state", "change", "gradient", "attended")
        for side, line in zip(SIDES, getattr(signal, name), strict=True)
    ]
    heads = [(f"share, head {number}", line) for number, line in enumerate(signal.share, start=1)]
    return [*by_side, ("share, mean", signal.share.mean(0)), *heads]


def draw(signals: dict[str, Signal]) -> Figure:
    """Plot all measurements over the layers."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 3).flatten()
    titles = {"state": "state", "change": "change", "gradient": "gradient", "attended": "attended tokens"}
    for place, (name, title) in zip(axes, titles.items(), strict=False):
        plot_sides(place, {model: getattr(signal, name) for model, signal in signals.items()})
        place.set_title(title, fontsize=10)
    axes[0].legend(fontsize=7)
    axes[2].set_yscale("log")
    for place, (model, signal) in zip(axes[len(titles) :], signals.items(), strict=True):
        plot_heads(place, signal.share)
        place.set_title(f"share of the source, {model}", fontsize=10)
    for place in axes:
        place.set_xlabel("layer", fontsize=8)
        place.tick_params(labelsize=8)
        place.grid(alpha=0.3)
    return figure


def plot_sides(axes: Axes, lines: dict[str, Tensor]) -> None:
    """Plot values (2, N) of both models: the first one dashed, and one colour for each side.

    The gradient of the source's top layer is 0, because no layer reads it. It is left out.
    """
    for (model, values), style in zip(lines.items(), ("--", "-"), strict=True):
        for side, color, line in zip(SIDES, ("C0", "C1"), values, strict=True):
            shown = line.where(line > 0, torch.nan)
            axes.plot(range(1, len(line) + 1), shown, style, color=color, label=f"{side}, {model}")


def plot_heads(axes: Axes, share: Tensor) -> None:
    """Plot the share of the source of each head (H, N), and the mean over heads."""
    layers = range(1, share.size(1) + 1)
    for line in share:
        axes.plot(layers, line, color="0.7")
    axes.plot(layers, share.mean(0), color="C0")
    axes.set_ylim(0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a trained LWC Transformer")
    parser.add_argument("--data", required=True, help="the folder of fairseq-preprocess, with a set `valid`")
    parser.add_argument("--out", type=Path, required=True, help="the picture, .png or .svg")
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences (default: %(default)s)")
    args = parser.parse_args()
    make_place(args.out)
    torch.manual_seed(1)
    new, trained, sample, padding = read(args.checkpoint, args.data, args.sentences)
    signals = {"start": measure(new, sample, padding), "trained": measure(trained, sample, padding)}
    print_table(signals)
    draw(signals).savefig(args.out, dpi=150)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"lwc_signal: error: {error}")
