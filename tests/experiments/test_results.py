"""Scores, tests of significance, and the written table."""

import json
from pathlib import Path

import pytest
from sacrebleu import corpus_bleu

from lwc_fairseq.experiments.job import Settings
from lwc_fairseq.experiments.results import collect, write
from lwc_fairseq.experiments.score import (
    Translations,
    bleu,
    read_generated,
    read_references,
    score,
    significance,
    with_references,
)
from lwc_fairseq.experiments.table import Profile, Row, Score, Table

REFERENCES = [f"the {a} {b} sees a {c} here" for a in ("old", "new", "big") for b in ("cat", "dog") for c in "xyz"]


def generated(hypotheses):
    """As fairseq-generate writes it: in the order of batches, with a hypothesis' score."""
    lines = []
    for number in reversed(range(len(hypotheses))):
        lines += [f"S-{number}\tquelle", f"T-{number}\t{REFERENCES[number]}", f"H-{number}\t-0.5\t{hypotheses[number]}"]
        lines += [f"D-{number}\t-0.5\tdetokenised", f"P-{number}\t-0.1 -0.2", f"H-{number}\t-0.9\tsecond best"]
    return "\n".join([*lines, "Generate test with beam=5: BLEU4 = 1.0", ""])


def worse(words):
    return [line.replace(words, "none") for line in REFERENCES]


def test_the_best_hypotheses_are_read_in_order(tmp_path):
    (tmp_path / "out").write_text(generated(worse("cat")))
    found = read_generated(tmp_path / "out")
    assert found.hypotheses == worse("cat") and found.references == [REFERENCES]


@pytest.mark.parametrize(
    "text", ["", generated(REFERENCES).rpartition("Generate")[0], "H-0\t-1\thello\nGenerate test\n"]
)
def test_half_an_output_is_refused(tmp_path, text):
    (tmp_path / "out").write_text(text)
    with pytest.raises(ValueError, match="not the whole output of fairseq-generate; remove it and run the row again"):
        read_generated(tmp_path / "out")


def test_scores_are_sacrebleus():
    hypotheses = [line.upper() for line in worse("cat")]
    cased, caseless = (score(Translations(hypotheses, [REFERENCES]), Score(lowercase=lower)) for lower in (False, True))
    expected = corpus_bleu(hypotheses, [REFERENCES], lowercase=True, tokenize="none", force=True).score
    assert caseless["bleu"] == pytest.approx(expected, abs=0.005)
    assert cased["bleu"] < 5 and "case:lc" in caseless["signature"] and caseless["length_ratio"] == 1.0


def test_more_references():
    translations = with_references(Translations(worse("cat"), [REFERENCES]), [worse("cat"), REFERENCES])
    assert score(translations, Score())["bleu"] == 100.0
    with pytest.raises(ValueError, match="--references: 1 lines for 18 translated sentences"):
        with_references(translations, [["one"]])


def test_references_are_lines_as_fairseq_counts_them(tmp_path):
    (tmp_path / "ref").write_bytes("a\u2028b\nc\u0085d\x0be\n".encode())
    assert read_references([tmp_path / "ref"]) == [["a\u2028b", "c\u0085d\x0be"]]


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="score: tokenize: 13b: sacrebleu has"):
        bleu(Score(tokenize="13b"))


def test_what_cannot_be_read_or_was_made_otherwise_is_a_failed_row(tmp_path):
    table = Table(title="A table", rows=[Row(name=name, arch="rnnsearch") for name in ("good", "half", "other")])
    settings = Settings(table, Profile(), "data", tmp_path)
    jobs = settings.jobs(1)
    for job in jobs:
        job.folder.mkdir(parents=True)
        job.generated.write_text(generated(REFERENCES))
    jobs[1].generated.write_text("H-0")
    jobs[2].command_file("generate").write_text("fairseq-generate --beam 99")
    failures = {}
    results = {result.name: result for result in collect(settings, jobs, failures)}
    assert results["good"].value == 100 and results["good"].failed is None
    assert "not the whole output" in results["half"].failed and "has other flags" in results["other"].failed
    assert len(failures) == 2


def test_significance():
    good, bad = Translations(REFERENCES, [REFERENCES]), Translations(worse("cat"), [REFERENCES])
    assert significance([bad], [good], Score()) < 0.05
    assert significance([good], [good], Score()) == 1
    others = (Translations(worse(words), [REFERENCES]) for words in ("x here", "y here"))
    assert significance(*([other] for other in others), Score()) > 0.05


def test_a_table_of_two_seeds(tmp_path):
    rows = [
        Row(name="base", arch="rnnsearch", label="Base", x=1.0),
        Row(name="failed", arch="rnnsearch"),
        Row(name="ours", arch="rnnsearch", published=35.07, parameters=19.07, x=2.0),
        Row(name="theirs", label="Theirs", published=30.0, x=1.0),
        Row(name="helper", arch="rnnsearch", hidden=True),
    ]
    table = Table(title="A table", baseline="base", curve="layers", rows=rows)
    settings = Settings(table, Profile(), "data", tmp_path)
    jobs = settings.jobs(2)
    outputs = {("base", 1): "cat", ("base", 2): "here", ("ours", 1): "x here", ("ours", 2): "old cat"}
    for job in jobs:
        words = outputs.get((job.row.name, job.seed))
        if words:
            job.folder.mkdir(parents=True)
            job.generated.write_text(generated(worse(words)))
            job.train_log.write_text(
                'x | num. shared model params: 19,070,464 (num. trained: 1)\n{"num_updates": "70"}\n'
            )
    failures = {job.folder: "the reason" for job in jobs if job.row.name == "failed"}
    results = {result.name: result for result in collect(settings, jobs, failures, [])}
    assert list(results) == ["base", "failed", "ours", "theirs"]
    values = [score(Translations(worse(words), [REFERENCES]), Score())["bleu"] for words in ("x here", "old cat")]
    assert results["ours"].value == pytest.approx(sum(values) / 2, abs=0.006)
    assert results["ours"].deviation == pytest.approx(abs(values[0] - values[1]) / 2**0.5, abs=0.006)
    assert results["base"].p is None and 0 <= results["ours"].p <= 1

    written = write(settings, list(results.values()), seeds=2)
    assert [path.name for path in written] == ["table.md", "table.json", "table.png"]
    assert Path(written[2]).read_bytes().startswith(b"\x89PNG")
    page = written[0].read_text()
    assert f"| ours | {results['ours'].value:.2f} ± {results['ours'].deviation:.2f} |" in page
    assert "19.07M | 70 | 35.07 | 19.07M |" in page and "| failed | failed |" in page and "| Theirs | – |" in page
    assert "p, against Base" in page
    assert [row["published"] for row in json.loads(written[1].read_text())["rows"]] == [None, None, 35.07, 30.0]
