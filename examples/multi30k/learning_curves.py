"""Draw the losses of the results page: in panels of models that are compared.

    python examples/multi30k/learning_curves.py examples/results/multi30k_losses.tsv --seed 2 --out curves.png

`lwc-fairseq table` draws those of your own runs.
"""

import argparse
import csv
import math
import sys
from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure

from lwc_fairseq.experiments.training_log import Losses, plot_losses
from lwc_fairseq.files import make_place, read_lines
from lwc_fairseq_compat import UserError

PANELS = {
    "LWC": (
        *("transformer", "lwc", "lwc_unshared", "lwc_separate", "lwc_no_sides", "lwc_no_positions", "context_gate"),
        *("lwc_windows", "abd_lwc", "abd_lwc_windows", "abd_lwc_windows_file"),
    ),
    "DeepAtt": (
        *("rnnsearch", "deepatt_1", "deepatt_3", "deepatt", "deepnmt", "vdeepatt", "wideatt", "mheadnmt", "udeepatt"),
        *("lstm", "rnnsearch_width168"),
    ),
    "ABD": ("rnnsearch", "r2l", "nsc_rt", "nsc_hs", "abd", "abd_translations", "rnmt", "abd_rnmt"),
    "ABD (RR)": ("abd", "abd_rr"),
    "LWC, 7,000 pairs": ("transformer_7000", "lwc_7000", "lwc_windows_7000"),
}
"""The models of the tables of losses in each panel. ABD (RR) has one of its own, because its losses are far from
the others."""


def read(path: Path, seed: str) -> dict[str, Losses]:
    """Read the losses of each model with this seed. Raises UserError if the file cannot be read."""
    losses: dict[str, Losses] = defaultdict(Losses)
    for line in csv.DictReader(read_lines(path), delimiter="\t"):
        if line["seed"] == seed:
            losses[line["model"]].valid[int(line["updates"])] = float(line["validation loss"])
            losses[line["model"]].train[int(line["updates"])] = float(line["training loss"])
    return losses


def draw(losses: dict[str, Losses]) -> Figure:
    """Plot the losses of these models."""
    panels = choose_panels(losses)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(13, 5 * rows), layout="constrained")
    for place, (title, panel) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, place)
        plot_losses(axes, panel)
        axes.set_title(title)
    return figure


def choose_panels(losses: dict[str, Losses]) -> dict[str, dict[str, Losses]]:
    """Return the models of each panel. A panel that has no model beside those of the panels before it is left out.

    Raises UserError if a model has no panel.
    """
    if homeless := losses.keys() - {model for models in PANELS.values() for model in models}:
        raise UserError(f"{', '.join(sorted(homeless))}: in no panel: add each model to PANELS in {__file__}")
    panels, shown = {}, set()
    for title, models in PANELS.items():
        panel = {model: losses[model] for model in models if model in losses}
        if panel.keys() - shown:
            panels[title] = panel
            shown |= panel.keys()
    return panels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", type=Path, help="table of losses, such as examples/results/multi30k_losses.tsv")
    parser.add_argument("--seed", default="2", help="the seed whose runs are drawn (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the picture, .png or .svg")
    args = parser.parse_args()
    make_place(args.out)
    losses = read(args.losses, args.seed)
    if not losses:
        raise UserError(f"{args.losses}: no losses with seed {args.seed}")
    draw(losses).savefig(args.out, dpi=150)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"learning_curves: error: {error}")
