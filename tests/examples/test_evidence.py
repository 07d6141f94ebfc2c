"""docs/evidence.md: it is what its script writes, its intervals are right, and other pages quote it."""

import importlib.util
import re
import shlex
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from sacrebleu import corpus_bleu

from conftest import ROOT
from lwc_fairseq.cli import parser
from lwc_fairseq_compat import UserError
from pages import commands, every_page, read

PAGE = ROOT / "docs" / "evidence.md"
MULTI30K = ROOT.parent / "shared" / "multi30k"
SCRIPT = ROOT / "examples" / "multi30k" / "evidence.py"
INTERVAL = re.compile(r"\[-?\d+\.\d\d, -?\d+\.\d\d\]")

REFERENCES = [
    f"{word} man is standing on a {thing} ." for word in ("an old", "a young") for thing in ("box", "car", "hill")
]
BAD = [line.replace("standing on", "sitting near") for line in REFERENCES]


def on_one_line(page: Path) -> str:
    """The text of a page, whose lines may end within an interval or a phrase."""
    return " ".join(read(page).split())


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("evidence", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(script, tmp_path, monkeypatch):
    """Writes translations and resamples them: takes the lines of each seed of each model."""
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    monkeypatch.setattr(script, "NGRAMS", tmp_path / "ngrams.tsv")

    def resample(references: list[str], **models: list[list[str]]):
        for name, seeds in models.items():
            for seed, lines in enumerate(seeds, 1):
                (tmp_path / f"{name}_seed{seed}.en").write_text("".join(line + "\n" for line in lines))
        facts = script.Facts({name: script.Model(name, "LWC", name, "A") for name in models}, {}, [], {})
        (tmp_path / "ngrams.tsv").write_text(script.count_ngrams(facts, references))
        return script.resample(facts)

    return resample


def test_the_page_is_what_its_script_writes(script, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, "--out", str(tmp_path)])
    script.main()
    assert read(tmp_path / "evidence.md") == read(PAGE), "run python examples/multi30k/evidence.py"
    assert imread(tmp_path / "evidence.png").shape == imread(PAGE.with_suffix(".png")).shape


def test_all_translations_are_shown(script):
    """Except for those of a second search with the same models."""
    shown = {path for model in script.read_facts().models.values() for path in model.files().values()}
    kept = set(script.RESULTS.glob("multi30k_translations*/*.en"))
    second = {"lwc_windows": (1, 2, 3), "abd_lwc_windows": (1, 2, 3), "abd_lwc_windows_file": (1,)}
    assert {script.name(path) for path in kept - shown} == {
        f"multi30k_translations_windows/{model}_seed{seed}.en" for model, seeds in second.items() for seed in seeds
    }


@pytest.mark.skipif(not MULTI30K.is_dir(), reason="Multi30k is not beside the repository")
def test_the_kept_numbers_are_those_of_the_references(script):
    facts = script.read_facts()
    facts.models = {name: facts.models[name] for name in ("lwc", "lwc_windows_7000_chosen")}
    counted = script.count_ngrams(facts, read(MULTI30K / "test_2016_flickr.en").splitlines()).splitlines()
    assert len(counted) == 2 + 4 * 4 and set(counted) <= set(read(script.NGRAMS).splitlines())


def test_bleu_is_that_of_sacrebleu(script, small):
    lines = [*REFERENCES[:3], *BAD[3:]]
    lines[1] = "a man is standing on a hill"
    scores = small(REFERENCES, model=[lines])
    expected = corpus_bleu(lines, [REFERENCES], tokenize="none", force=True).score
    assert scores["model"].mean == pytest.approx(expected, abs=1e-9) and 20 < expected < 90
    first, *_ = script.draw_sentences(len(lines)).astype(int)
    drawn = [row for row, times in enumerate(first) for _ in range(times)]
    sample = corpus_bleu(
        [lines[row] for row in drawn], [[REFERENCES[row] for row in drawn]], tokenize="none", force=True
    )
    assert scores["model"].of_seeds[0, 0] == pytest.approx(sample.score, abs=1e-9)


def test_a_sample_draws_seeds_with_replacement(small):
    """If all sentences are alike, the seeds alone make the samples differ."""
    scores = small(REFERENCES[:1] * 5, two=[REFERENCES[:1] * 5, BAD[:1] * 5], one=[BAD[:1] * 5])
    low = scores["one"].mean
    values, times = np.unique(scores["two"].over_both.round(6), return_counts=True)
    assert values == pytest.approx([low, (low + 100) / 2, 100])
    assert times / times.sum() == pytest.approx([0.25, 0.5, 0.25], abs=0.02)
    assert scores["two"].over_sentences == pytest.approx((low + 100) / 2)
    assert scores["one"].over_both == pytest.approx(low)


def test_models_have_the_same_samples_of_sentences(small):
    lines = [*REFERENCES[:3], *BAD[3:]]
    scores = small(REFERENCES, model=[lines], copy=[lines])
    assert np.ptp(scores["model"].over_both) > 20
    assert (scores["model"].over_both == scores["copy"].over_both).all()


def test_another_model_does_not_change_an_interval(small):
    seeds = [REFERENCES, BAD, REFERENCES[:3] + BAD[3:]]
    before = small(REFERENCES, model=seeds)["model"].over_both
    after = small(REFERENCES, other=seeds, model=seeds)
    assert (after["model"].over_both == before).all() and (after["other"].over_both != before).any()


ABOVE, BELOW, ACROSS = (np.linspace(low, low + 2, 100) for low in (1, -3, -1))


@pytest.mark.parametrize(
    ("difference", "over_both", "over_sentences", "said"),
    [
        (2, ABOVE, ABOVE, "agrees"),
        (-2, BELOW, BELOW, "disagrees"),
        (2, ACROSS, ABOVE, "weakly agrees"),
        (-2, ACROSS, BELOW, "weakly disagrees"),
        (0.1, ACROSS, ACROSS, "cannot tell"),
        (2, None, ABOVE, "agrees"),
        (1, None, ABOVE, "weakly agrees"),
        (-1, None, BELOW, "weakly disagrees"),
        (2, None, ACROSS, "cannot tell"),
    ],
)
def test_verdicts(script, difference, over_both, over_sentences, said):
    assert script.verdict(difference, over_both, over_sentences, largest=1.5) == said


def test_the_picture_has_every_model_and_seed(script):
    models = script.read_facts().models
    scores = {
        name: script.Scores({"1": 40 + place, "2": 41.0 + place}, *np.full((2, 4), 40.5 + place)[:, :, None])
        for place, name in enumerate(models)
    }
    panels = script.draw(models, scores).axes
    labels = [[label.get_text() for label in axes.get_yticklabels()] for axes in panels]
    assert list(chain(*labels)) == [model.label for model in models.values()]  # from the lowest BLEU to the highest
    dots = [line for axes in panels for line in axes.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots] == [list(one.seeds.values()) for one in scores.values()]


def test_translations_that_were_not_counted_are_refused(script, small, tmp_path):
    small(REFERENCES, model=[REFERENCES])
    with pytest.raises(UserError, match=r"model_seed1.en: 6 lines for 5 references: give another DATA"):
        small(REFERENCES[:5], model=[REFERENCES])
    (tmp_path / "model_seed1.en").write_text("".join(line + "\n" for line in BAD))
    facts = script.Facts({"model": script.Model("model", "LWC", "model", "A")}, {}, [], {})
    with pytest.raises(UserError, match=r"model_seed1.en: not as in ngrams.tsv: name the folder that prepare.sh wrote"):
        script.resample(facts)
    with pytest.raises(UserError, match=r"none: .* has no none_seed1.en"):
        script.Model("none", "LWC", "none", "A").files()


def test_an_unknown_model_is_refused(script, tmp_path, monkeypatch):
    facts = tmp_path / "evidence.yaml"
    facts.write_text(read(script.FACTS).replace("baseline: atnmt", "baseline: atmnt"))
    monkeypatch.setattr(script, "FACTS", facts)
    with pytest.raises(UserError, match=r"evidence.yaml: atmnt: give one of transformer, lwc, "):
        script.read_facts()


@pytest.mark.parametrize("command", commands(PAGE), ids=lambda command: command[-60:])
def test_the_commands_train(command, capsys):
    """Those that make a table. `train.sh` passes what follows -- to `lwc-fairseq table`."""
    words = shlex.split(command)
    if words[0] == "bash":
        assert words[1:3] == ["examples/multi30k/train.sh", "--"]
        words = ["", "table", "examples/multi30k/models.yaml", "--data", "DATA", "--out", "OUT", *words[3:]]
    if words[1] == "reverse":
        parser().parse_args(words[1:])
        return
    args = parser().parse_args([*words[1:], "--dry-run"])
    args.call(args)
    assert "fairseq-train" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [page for page in every_page() if page != PAGE and INTERVAL.search(on_one_line(page))],
    ids=lambda page: page.stem,
)
def test_intervals_on_other_pages_are_those_of_this_page(page):
    assert set(INTERVAL.findall(on_one_line(page))) <= set(INTERVAL.findall(on_one_line(PAGE)))


def test_each_comparison_of_the_readme_has_an_interval():
    """Except for what the papers say."""
    measured = on_one_line(ROOT / "README.md").partition("## Measured")[2].partition(" ## ")[0]
    sentences = re.split(r"(?<=[.:]) ", measured)
    comparison = re.compile(r"\b(better|worse|best|as (good|much)|(more|less) than)\b")
    claims = [sentence for sentence in sentences if comparison.search(sentence) and "its paper" not in sentence]
    assert len(claims) > 5
    for claim in claims:
        assert INTERVAL.search(claim), claim
