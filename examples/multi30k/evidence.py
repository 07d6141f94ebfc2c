"""Write docs/evidence.md and docs/evidence.png: the main claims with their intervals, and the BLEU of every model.

    python examples/multi30k/evidence.py [DATA] [--out FOLDER]

docs/evidence.yaml names the models and the claims; examples/results has the translations. DATA is the folder that
prepare.sh wrote, whose test set has the references. examples/results/multi30k_ngrams.tsv keeps what BLEU needs of them:
their lengths, and how many n-grams each translation shares with its reference. So only new translations need DATA.
"""

import argparse
import sys
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from zlib import crc32

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lwc_fairseq.analysis.translations import Score, bleu
from lwc_fairseq.experiments.table_file import load_table
from lwc_fairseq.files import make_folder, read_lines, write_whole
from lwc_fairseq.pages import as_png, markdown_table
from lwc_fairseq.typed_yaml import as_settings, read_yaml
from lwc_fairseq_compat import UserError

ROOT = Path(__file__).resolve().parent.parent.parent
FACTS = ROOT / "docs" / "evidence.yaml"
RESULTS = ROOT / "examples" / "results"
NGRAMS = RESULTS / "multi30k_ngrams.tsv"

ORDERS = np.arange(1, 5)
"""The lengths of the n-grams that BLEU counts."""

SAMPLES = 10_000
FIRST_NUMBER = 1  # of the random generators
REFERENCE = ("reference", "", "")
COLORS = {"LWC": "tab:blue", "DeepAtt": "tab:orange", "ABD": "tab:green", "baseline": "tab:gray"}

PAGE = """\
# Evidence

This page has the main claims of [the papers](../README.md#papers-and-presets), and what our models show. They have a
width of 128 (168 for the RNNSearch of equal size), and translate Multi30k, German to English. BLEU is that of the 1,000
sentences of test_2016_flickr (tokenised, lower-cased). Numbers are differences of BLEU, above 0 where they agree with
the claim. Intervals have 95 %. [The results](../examples/results/multi30k.md) have everything else.

{table}

![BLEU of all models with their intervals, the best on top](evidence.png)

A dot is a seed, a number the mean over seeds, a bar the interval over seeds and sentences. (With one seed, it is over
sentences.) Only the table compares models: they translate the same sentences, so bars may overlap where the difference
is clear. [The results](../examples/results/multi30k.md) explain the names.

## How to read the table

- **Paper**: with larger models, on the paper's own data. For windows, it is Fonollosa et al.'s BLEU less He et
  al.'s. They also differ in training, search, test set, and an average of ten checkpoints.
- **Here**: the difference between the means over seeds.
- **Over seeds and sentences**: what other trainings and other test sentences would give. It is a bootstrap of
  {samples:,} samples. Each draws, with replacement, seeds for each model, and the same sentences for all models.
- **Over sentences**: what other test sentences would give with these trained models. The samples draw no seeds.
- **Verdict**: "agrees" or "disagrees" if the interval over seeds and sentences excludes 0, "weakly agrees" or "weakly
  disagrees" if only the interval over sentences does. With one seed, there is only the interval over sentences. If it
  excludes 0, a difference of at most {least:.2f} BLEU gets a "weakly", because two runs of one model differ by as much.
  An interval that ends at 0.00 does not exclude 0. At best, one interval in twenty misses the true value;
  those over sentences miss it more often, as the end of this section says. So a few verdicts are wrong.
- **Seeds**: how many the first and the second model have. The translations of seed 1 of the Transformer and LWC were
  lost; [the results](../examples/results/multi30k.md#results) have their BLEU. One seed is seed 2, but those of
  RNMT, of ABD with RNMT and of LWC with a file are seed 1.
- **Command**: by its letter [below](#commands).

Two or three seeds are few. A bootstrap over them is too narrow if runs differ much by their seeds. If they differ
little, it is too wide, because it counts the choice of sentences more than once. On {most} they differ little: runs
of one model have a standard deviation of {seeds_sd:.2f} BLEU, and the choice of sentences alone would give
{sentences_sd:.2f}. On fewer pairs they differ more ({seeds_sd_few:.2f}), so those intervals may be too narrow. There,
one model has two seeds that happen to be alike, and [a t-test](../examples/results/multi30k.md#the-second-trial-of-lwc)
is less sure of its difference.

The interval over sentences compares two trained models, not two kinds of model. We also compared {pairs} pairs of
translations by models of one kind, trained with different seeds. For {distinct} of the {pairs}, this interval excludes
0. Chance alone would give {chance:.1f}. Three pairs of models count twice, with two searches. In one pair, dropout is
also drawn in another way. In four pairs, the batches differ, too.

## More comparisons

{others}

## Commands

`bash examples/multi30k/prepare.sh` makes the data. DATA_7000 is made in the same way from 7,000 of the training pairs;
the list of these was not kept. Where the table has only seed 2, the command also trains seed 1, and D seed 3 of ABD. On
7,000 pairs, LWC was translated without its row's `--gnmt-length-penalty`, by `fairseq-generate --beam 6 --lenpen 1`
instead of J's. For the comparison with the length penalties that validation chose, seeds 1 and 2 of the Transformer (J)
and of LWC with windows (K) were trained again, on a CPU. G and I trained models that only the picture has. With I, the
last epoch's checkpoint was translated, not the average. Before M, [a right-to-left
model](../examples/results/multi30k.md#reverse-translations-from-a-file) made the reverse translations. "With a file"
adds `--reverse-from-data` to M's search. Seed 1 of M and both models of O were trained in two processes, with 1,107
tokens in each (the first of O after 1,701 updates). Both of O had `--criterion chunked_cross_entropy`, which has the
same loss as λ = 1. H and L translate the models of [the second
trial](../examples/results/multi30k.md#the-second-trial-of-lwc) with another search: after its commands, remove the
files `generated.txt` of these rows first.

```bash
{commands}
```

`python examples/multi30k/evidence.py` writes this page and its picture from [`evidence.yaml`](evidence.yaml) and the
translations beside the results. For new translations, it needs the folder that `prepare.sh` wrote, which has the
references: `python examples/multi30k/evidence.py runs/multi30k`.
"""


@dataclass
class Model:
    """docs/evidence.yaml explains the fields."""

    label: str
    family: str
    translations: str
    command: str
    data: str = "29,000 pairs"

    def files(self) -> dict[str, Path]:
        """Return the translations of each seed. Raises UserError if there are none."""
        start = f"{self.translations}_seed"
        files = {path.stem.rpartition("_seed")[2]: path for path in sorted(RESULTS.glob(f"{start}*.en"))}
        if not files:
            raise UserError(f"{FACTS}: {self.label}: {RESULTS} has no {start}1.en")
        return files


@dataclass
class Claim:
    """That one model is better than another; docs/evidence.yaml explains the fields."""

    claim: str
    model: str
    baseline: str
    paper: list[str] | None = None

    @property
    def models(self) -> tuple[str, str]:
        return self.model, self.baseline


@dataclass
class Facts:
    models: dict[str, Model]
    claims: dict[str, list[Claim]]
    others: list[Claim]
    commands: dict[str, str]


@dataclass
class Scores:
    """BLEU of a model."""

    seeds: dict[str, float]
    of_seeds: np.ndarray  # (samples, seeds): over the sentences of each sample
    over_both: np.ndarray  # (samples): the mean over the seeds of each sample, over its sentences

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.seeds.values())))

    @property
    def over_sentences(self) -> np.ndarray:
        return self.of_seeds.mean(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="the folder that prepare.sh wrote, to count n-grams anew")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs", help="the folder of page and picture (default: docs)"
    )
    args = parser.parse_args()
    facts = read_facts()
    make_folder(args.out)
    if args.data:
        write_whole(NGRAMS, count_ngrams(facts, read_lines(args.data / "text" / "test.en")))
    scores = resample(facts)
    picture = as_png(draw(facts.models, scores), dpi=100)
    write_whole(args.out / "evidence.md", page(facts, scores))
    write_whole(args.out / "evidence.png", picture)


def read_facts() -> Facts:
    """Read docs/evidence.yaml. Raises UserError if it names a model, a command or a family that there is not."""
    facts = as_settings(str(FACTS), Facts, read_yaml(FACTS))
    used: list[tuple[str, Collection[str]]] = []
    for model in facts.models.values():
        used += [(model.command, facts.commands), (model.family, COLORS)]
    for claim in chain(*facts.claims.values(), facts.others):
        used += [(key, facts.models) for key in claim.models]
    for name, known in used:
        if name not in known:
            raise UserError(f"{FACTS}: {name}: give one of {', '.join(known)}")
    return facts


def count_ngrams(facts: Facts, references: list[str]) -> str:
    """Return the content of multi30k_ngrams.tsv. Raises UserError if a file has more or fewer lines than the
    references."""
    metric = bleu(Score())
    rows = [["text", "checksum", "n", "words of the reference, or n-grams that match, in each sentence"]]
    rows.append([*REFERENCE, " ".join(str(len(line.split())) for line in references)])
    for model in facts.models.values():
        for path in model.files().values():
            lines = read_lines(path)
            if len(lines) != len(references):
                raise UserError(f"{path}: {len(lines)} lines for {len(references)} references: give another DATA")
            pairs = zip(lines, references, strict=True)
            matches = np.array([metric.corpus_score([line], [[reference]]).counts for line, reference in pairs])
            for n in ORDERS:
                rows.append([name(path), str(crc32(path.read_bytes())), str(n), " ".join(map(str, matches[:, n - 1]))])
    return "".join("\t".join(row) + "\n" for row in rows)


def name(path: Path) -> str:
    return path.relative_to(RESULTS).as_posix()


def read_ngrams() -> dict[tuple[str, str, str], np.ndarray]:
    """Read multi30k_ngrams.tsv: the n-grams that match in each sentence, by file, checksum and n."""
    lines = [line.split("\t") for line in read_lines(NGRAMS)[1:]]
    return {(text, checksum, n): np.array(counts.split(), dtype=int) for text, checksum, n, counts in lines}


def read_statistics(path: Path, ngrams: dict[tuple[str, str, str], np.ndarray]) -> np.ndarray:
    """Return what BLEU needs of each translation in a file, (sentences, 10): its words, those of the reference, the
    n-grams that match, and all n-grams, for n from 1 to 4. Raises UserError if `ngrams` does not have this file."""
    keys = [(name(path), str(crc32(path.read_bytes())), str(n)) for n in ORDERS]
    if not ngrams.keys() >= set(keys):
        raise UserError(f"{path}: not as in {NGRAMS.name}: name the folder that prepare.sh wrote, to count its n-grams")
    words = np.array([len(line.split()) for line in read_lines(path)])
    possible = np.maximum(words[:, None] - ORDERS + 1, 0)
    return np.column_stack([words, ngrams[REFERENCE], *(ngrams[key] for key in keys), possible])


def corpus_bleu(sums: np.ndarray) -> np.ndarray:
    """Return sacrebleu's BLEU for sums of statistics, (..., 10), where an n-gram of each length matches."""
    brevity = np.minimum(0, 1 - sums[..., 1] / sums[..., 0])
    return 100 * np.exp(brevity + np.log(sums[..., 2:6] / sums[..., 6:]).mean(-1))


def resample(facts: Facts) -> dict[str, Scores]:
    """Compute BLEU of each model for the real sentences, and for samples of sentences and of seeds.

    All models have the same samples of sentences. Those of seeds depend on the model's name, so that another model in
    the file does not change the intervals.
    """
    ngrams = read_ngrams()
    samples = draw_sentences(len(ngrams[REFERENCE]))
    scores = {}
    for key, model in facts.models.items():
        statistics = [read_statistics(path, ngrams) for path in model.files().values()]
        seeds = {
            seed: float(corpus_bleu(of_seed.sum(0))) for seed, of_seed in zip(model.files(), statistics, strict=True)
        }
        of_seeds = np.stack([corpus_bleu(samples @ of_seed) for of_seed in statistics], 1)
        generator = np.random.default_rng([FIRST_NUMBER, crc32(key.encode())])
        drawn = generator.integers(len(seeds), size=of_seeds.shape)
        scores[key] = Scores(seeds, of_seeds, np.take_along_axis(of_seeds, drawn, 1).mean(1))
    return scores


def draw_sentences(sentences: int) -> np.ndarray:
    """Return how often each sample has each sentence, (samples, sentences)."""
    generator = np.random.default_rng(FIRST_NUMBER)
    drawn = (generator.integers(sentences, size=sentences) for _ in range(SAMPLES))
    return np.stack([np.bincount(rows, minlength=sentences) for rows in drawn]).astype(float)  # products are fast


def interval(samples: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(samples, [2.5, 97.5])
    return float(low), float(high)


def is_distinct(samples: np.ndarray) -> bool:
    """Return whether the interval, as the page has it, does not contain 0."""
    low, high = (round(end, 2) for end in interval(samples))
    return low > 0 or high < 0


@dataclass
class Pair:
    """Two runs of one model with different seeds. The page says which pairs differ in more."""

    data: str
    difference: float
    over_sentences: np.ndarray  # (samples): the difference over the sentences of each sample


def pairs_of_seeds(facts: Facts, scores: dict[str, Scores]) -> list[Pair]:
    pairs = []
    for key, model in facts.models.items():
        values = list(scores[key].seeds.values())
        for one, other in combinations(range(len(values)), 2):
            samples = scores[key].of_seeds[:, one] - scores[key].of_seeds[:, other]
            pairs.append(Pair(model.data, values[one] - values[other], samples))
    return pairs


def standard_deviation(pairs: list[Pair]) -> float:
    """Return that of runs of one model. The variance of a difference is twice that of a run."""
    return np.sqrt(np.mean([pair.difference**2 for pair in pairs]) / 2)


def page(facts: Facts, scores: dict[str, Scores]) -> str:
    """Return the page as Markdown."""
    pairs = pairs_of_seeds(facts, scores)
    on_all_data = [pair for pair in pairs if pair.data == Model.data]
    on_fewer = [pair for pair in pairs if pair.data != Model.data]
    largest = {pair.data: abs(pair.difference) for pair in sorted(pairs, key=lambda pair: abs(pair.difference))}
    header = ["claim", "paper", "here", "over seeds and sentences", "over sentences", "verdict", "seeds", "command"]
    rows = []
    for paper, claims in facts.claims.items():
        rows.append([f"**{paper}**", *[""] * (len(header) - 1)])
        rows += [cells(claim, facts.models, scores, largest) for claim in claims]
    others = [cells(claim, facts.models, scores, largest) for claim in facts.others]
    return PAGE.format(
        table="\n".join(markdown_table(header, rows)),
        others="\n".join(markdown_table(header, others)),
        samples=SAMPLES,
        most=Model.data,
        seeds_sd=standard_deviation(on_all_data),
        seeds_sd_few=standard_deviation(on_fewer),
        sentences_sd=np.sqrt(np.mean([pair.over_sentences.var() for pair in on_all_data]) / 2),
        pairs=len(pairs),
        distinct=sum(is_distinct(pair.over_sentences) for pair in pairs),
        chance=0.05 * len(pairs),
        least=largest[Model.data],
        commands="\n".join(f"{command}  # {letter}" for letter, command in facts.commands.items()),
    )


def cells(claim: Claim, models: dict[str, Model], scores: dict[str, Scores], largest: dict[str, float]) -> list[str]:
    """Return the row of a claim. `largest` is the largest difference between two runs of one model, by their data."""
    model, baseline = (scores[key] for key in claim.models)
    difference = model.mean - baseline.mean
    over_sentences = model.over_sentences - baseline.over_sentences
    over_both = None
    if len(model.seeds) > 1 and len(baseline.seeds) > 1:
        over_both = model.over_both - baseline.over_both
    return [
        claim.claim,
        f"{published(claim.paper):+.2f}" if claim.paper else "",
        f"{difference:+.2f}",
        "one seed" if over_both is None else in_brackets(over_both),
        in_brackets(over_sentences),
        verdict(difference, over_both, over_sentences, largest[models[claim.model].data]),
        ", ".join(str(len(scores[key].seeds)) for key in claim.models),
        ", ".join(sorted({models[key].command for key in claim.models})),
    ]


def published(paper: list[str]) -> float:
    """Return the difference between two published values: of a table file, and the names of two of its rows."""
    table, *names = paper
    values = {row.name: row.published for row in load_table(ROOT / "examples" / "tables" / f"{table}.yaml").rows}
    better, worse = (values[name] for name in names)
    assert better is not None and worse is not None
    return better - worse


def in_brackets(samples: np.ndarray) -> str:
    return "[{:.2f}, {:.2f}]".format(*interval(samples))


def verdict(difference: float, over_both: np.ndarray | None, over_sentences: np.ndarray, largest: float) -> str:
    """Return whether a difference agrees with the claim that it is above 0. The page explains the rules.

    Args:
        over_both: None if a model has one seed.
    """
    direction = "agrees" if difference > 0 else "disagrees"
    if over_both is not None and is_distinct(over_both):
        return direction
    if not is_distinct(over_sentences):
        return "cannot tell"
    return direction if over_both is None and abs(difference) > largest else f"weakly {direction}"


def draw(models: dict[str, Model], scores: dict[str, Scores]) -> Figure:
    """Plot BLEU of all models, the best on top, in a panel for the training data of each size."""
    panels: dict[str, list[str]] = {model.data: [] for model in models.values()}
    for key in sorted(models, key=lambda key: scores[key].mean):
        panels[models[key].data].append(key)
    heights = [len(keys) + 2 for keys in panels.values()]
    figure = Figure(figsize=(9, 0.23 * sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for place, (data, keys) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[place])
        draw_panel(axes, {models[key].label: scores[key] for key in keys}, [COLORS[models[key].family] for key in keys])
        axes.set_title(f"trained on {data}", fontsize=10)
    handles = [Patch(color=color, label=family) for family, color in COLORS.items()]
    figure.axes[0].legend(handles=handles, loc="upper left", fontsize=8)
    return figure


def draw_panel(axes: Axes, scores: dict[str, Scores], colors: list[str]) -> None:
    for place, (model, color) in enumerate(zip(scores.values(), colors, strict=True)):
        axes.plot(interval(model.over_both), [place] * 2, color=color, linewidth=5, alpha=0.3, solid_capstyle="butt")
        axes.plot(list(model.seeds.values()), [place] * len(model.seeds), "o", color=color, markersize=4)
        axes.text(1.01, place, f"{model.mean:.1f}", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    axes.set(xlabel="BLEU", ylim=(-0.7, len(scores) - 0.3))
    axes.set_yticks(range(len(scores)), list(scores), fontsize=8)
    axes.grid(axis="x", alpha=0.3)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"evidence: error: {error}")
