"""The table is made from the files that the runs wrote."""

import json
import math
from pathlib import Path

import pytest

from conftest import run
from lwc_fairseq.analysis.tagger import Tagger
from lwc_fairseq.analysis.translations import Score, Translations, joined, score, significance
from lwc_fairseq.experiments.jobs import Settings
from lwc_fairseq.experiments.page import plot_curve, table_page, write_table
from lwc_fairseq.experiments.report import read_table
from lwc_fairseq.experiments.results import Result, collect, make_detokenizer, make_record, read_record
from lwc_fairseq.experiments.table_file import ALL, Profile, Row, Table
from lwc_fairseq.pages import p_value
from lwc_fairseq.preparation import write_preparation
from sentences import REFERENCES, generated, worse


def write(settings, results, **facts) -> list[Path]:
    return write_table(settings, make_record(settings, results, **facts))


def test_what_cannot_be_read_is_a_failed_row(tmp_path):
    table = Table(title="A table", rows=[Row(name=name, arch="rnnsearch") for name in ("good", "half")])
    settings = Settings(table, Profile(), "data", tmp_path)
    jobs = settings.jobs(1)
    for job in jobs:
        job.folder.path.mkdir(parents=True)
        job.folder.result("generate").write_text(generated(REFERENCES))
    jobs[1].folder.result("generate").write_text("H-0")
    failures = {}
    results = {result.name: result for result in collect(settings, jobs, failures)}
    assert results["good"].value == 100 and results["good"].failed is None
    assert "not the whole output" in results["half"].failed and list(failures) == [jobs[1].folder]


def test_a_run_that_translated_fewer_sentences_is_a_failed_one(tmp_path):
    rows = [Row(name=name, arch="rnnsearch") for name in ("whole", "part")]
    settings = Settings(Table(title="A table", baseline="whole", rows=rows), Profile(), "data", tmp_path)
    jobs = settings.jobs(1)
    for job, hypotheses in zip(jobs, (REFERENCES, REFERENCES[:-1]), strict=True):
        job.folder.path.mkdir(parents=True)
        job.folder.result("generate").write_text(generated(hypotheses))
    whole, part = collect(settings, jobs, {})
    assert whole.value == 100 and part.value is None
    assert part.failed == "17 translations of the set, of which another run has 18"


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
        words = outputs.get((job.row.name, job.folder.seed))
        if words:
            job.folder.path.mkdir(parents=True)
            job.folder.result("generate").write_text(generated(worse(words)))
            job.folder.log("train").write_text(
                'x | num. shared model params: 19,070,464 (num. trained: 1)\n{"num_updates": "70"}\n'
                '| valid | {"valid_loss": "4.5", "valid_num_updates": "70"}\n'
            )
    failures = {job.folder: "the reason" for job in jobs if job.row.name == "failed"}
    results = {result.name: result for result in collect(settings, jobs, failures)}
    assert list(results) == ["base", "failed", "ours", "theirs"]
    values = [score(Translations(worse(words), [REFERENCES]), Score())["bleu"] for words in ("x here", "old cat")]
    assert results["ours"].value == pytest.approx(sum(values) / 2, abs=0.006)
    assert results["ours"].deviation == pytest.approx(abs(values[0] - values[1]) / 2**0.5, abs=0.006)
    assert results["base"].p is None and 0 <= results["ours"].p <= 1

    written = write(settings, list(results.values()), seeds=2, references={ALL: [Path("/a/reference")]})
    assert [path.name for path in written] == ["table.md", "table.json", "table.png", "learning_curves.png"]
    assert Path(written[2]).read_bytes().startswith(b"\x89PNG")
    page = written[0].read_text()
    assert f"| ours | {results['ours'].value:.2f} ± {results['ours'].deviation:.2f} |" in page
    assert "19.07M | 70 | 4.50 | 35.07 | 19.07M |" in page and "Losses: of each row's criterion" in page
    assert "| failed | failed |" in page and "| Theirs | – |" in page
    assert "p, against Base" in page
    record = json.loads(written[1].read_text())
    assert [row["published"] for row in record["rows"]] == [None, None, 35.07, 30.0]
    assert record["references"] == ["/a/reference"]


def end_trial(folder: Path, loss: str) -> None:
    folder.mkdir(parents=True)
    (folder / "trained").write_text("1.0\n")
    (folder / "train.log").write_text(f'| valid | {{"valid_loss": "{loss}", "valid_num_updates": "70"}}\n')


def test_the_lowest_validation_loss_chooses_among_trials(tmp_path):
    rows = [Row(name="ours", arch="rnnsearch", label="Ours"), Row(name="other", arch="rnnsearch", trials=[])]
    table = Table(title="A table", trials=["", "--lr 1", "--lr 2"], rows=rows)
    settings = Settings(table, Profile(), "data", tmp_path)
    end_trial(tmp_path / "ours" / "trial1", "3.5")
    end_trial(tmp_path / "ours" / "trial3", "3.25")
    (tmp_path / "ours" / "seed1").mkdir()
    (tmp_path / "ours" / "seed1" / "generated.txt").write_text(generated(REFERENCES))  # of trials that were removed
    ours, other = settings.jobs(1)
    assert not ours.has_flags and not ours.done and ours.refusal() is None and other.has_flags
    results = collect(settings, [ours, other], {})
    assert results[0].value is None and results[0].planned == 1
    record = make_record(settings, results, 1)
    assert [trial.loss for trial in record.trials] == [3.5, None, 3.25]
    assert not any(trial.is_chosen for trial in record.trials)

    end_trial(tmp_path / "ours" / "trial2", "nan")
    ours, other = settings.jobs(1)
    assert ours.has_flags and ours.train[-2:] == ["--lr", "2"] and "--lr" not in other.train
    results = collect(settings, [ours, other], {})
    assert results[0].value == 100
    page = write(settings, results, seeds=1)[0].read_text()
    assert "| Ours | none | 3.500 |  |\n| Ours | --lr 1 |  |  |\n| Ours | --lr 2 | 3.250 | yes |" in page
    assert "chosen by trials: --lr 2" in page
    assert read_record(tmp_path / "table.json").trials == make_record(settings, results, 1).trials

    for number in (1, 3):
        (tmp_path / "ours" / f"trial{number}" / "train.log").write_text("")
    ours, other = settings.jobs(1)
    assert not ours.has_flags and other.has_flags
    assert ours.hindrance([]) == f"no trial has a validation loss; see {tmp_path}/ours/trial1/train.log"


def test_a_loss_that_is_no_number_leaves_valid_json(tmp_path):
    table = Table(title="A table", rows=[Row(name="ours", arch="rnnsearch")])
    runs = [{"seed": 1, "bleu": 20.0, "valid_loss": -1.5e-05, "train_loss": math.nan}]
    runs += [{"seed": 2, "bleu": 20.0, "valid_loss": -2.5e-05, "train_loss": math.inf}]
    results = [Result("ours", "Ours", runs, value=20.0)]
    write(Settings(table, Profile(), "data", tmp_path), results, seeds=2)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    json.loads((tmp_path / "table.json").read_text(), parse_constant=refuse)
    page = table_page(read_record(tmp_path / "table.json"))
    assert "| -2.00e-05 | nan |" in page and page == (tmp_path / "table.md").read_text()


def test_a_row_with_its_own_baseline(tmp_path):
    """`ours` and `third` are the same translations, tested against different rows."""
    rows = [Row(name=name, arch="rnnsearch") for name in ("base", "ours")]
    rows += [
        Row(name="other", label="Other", arch="rnnsearch", hidden=True),
        Row(name="third", arch="rnnsearch", baseline="other"),
        Row(name="fourth", arch="rnnsearch", baseline="fifth"),
    ]
    settings = Settings(Table(title="Mine", baseline="base", rows=rows), Profile(), "data", tmp_path)
    jobs = settings.jobs(1)
    outputs = {"base": "cat", "ours": "x here", "other": "x here", "third": "x here", "fourth": "cat"}
    for job in jobs:
        assert job.generate
        job.folder.path.mkdir(parents=True)
        job.folder.result("generate").write_text(generated(worse(outputs[job.row.name])))
    results = collect(settings, jobs, {})
    base, ours, third, fourth = results
    assert ours.p < 0.5 and ours.baseline is None
    assert third.p == 1 and third.baseline == "Other"
    assert base.p is None and fourth.p is None  # the rows chosen with --rows lack the baseline of `fourth`
    page = write(settings, results, seeds=1)[0].read_text()
    assert "| BLEU | p |" in page and "| 1.000 (against Other) |" in page and "against base, unless a row" in page


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            "randomization",
            "p: two-sided, by sacrebleu's approximate randomization of BLEU, 10,000 trials, against base.",
        ),
        ("bootstrap", "p: one-sided, by sacrebleu's paired bootstrap resampling of BLEU, 1,000 trials, against base."),
    ],
)
def test_the_significance_test_that_the_table_chooses(tmp_path, test, said):
    rows = [Row(name=name, arch="rnnsearch") for name in ("base", "ours")]
    settings = Settings(Table(title="Mine", baseline="base", significance=test, rows=rows), Profile(), "data", tmp_path)
    for job, words in zip(settings.jobs(1), ("cat", "big"), strict=True):
        job.folder.path.mkdir(parents=True)
        job.folder.result("generate").write_text(generated(worse(words)))
    results = collect(settings, settings.jobs(1), {})
    base, ours = ([Translations(worse(words), [REFERENCES])] for words in ("cat", "big"))
    assert results[1].p == significance(base, ours, Score(), test)
    page = write(settings, results, seeds=1)[0].read_text()
    assert said in page and page == table_page(read_record(tmp_path / "table.json"))


def test_detokenised_scores_are_those_of_the_tools(tmp_path):
    """As examples/wmt16_en_ro/evaluate.sh scores: by sacremoses and sacrebleu, in a shell."""
    raw = ["Și-a spus: „Nu!” & a plecat.", "A plătit 3-4 lei (cam $5), nu-i așa?", "Da.", "Un rând 5% mai lung, aici."]
    tokens = [
        "și-a spus : „ Nu ! ” &amp; a plecat .",
        "a plătit 3 @-@ 4 lei ( cam $ 5 ) , nu-i aşa ?",
        "",
        "un &quot; rând &quot; 5 % mai lung , aici .",
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "model").write_text("Da (1/1)\n")
    keys = {"source": "en", "target": "ro", "tokenize": "true", "case": "truecase", "case_model": "model"}
    write_preparation(tmp_path / "data", keys)
    table = Table("A", score=Score(tokenize="13a", detokenize=True), rows=[Row(name="ours", arch="rnnsearch")])
    settings = Settings(table, Profile(), str(tmp_path / "data"), tmp_path)
    (job,) = settings.jobs(1)
    job.folder.path.mkdir(parents=True)
    job.folder.result("generate").write_text(generated(tokens))
    results = collect(settings, [job], {}, {ALL: [raw]}, detokenizer=make_detokenizer(settings))

    (tmp_path / "tokens").write_text("".join(f"{line}\n" for line in tokens))
    (tmp_path / "raw").write_text("".join(f"{line}\n" for line in raw))
    detokenise = "sacremoses -q detruecase < tokens | sacremoses -q -l ro detokenize > text"
    scored = run("bash", "-c", f"{detokenise}; sacrebleu raw -i text --score-only --width 2", cwd=tmp_path)
    assert results[0].value == float(scored.stdout) > 20

    page = write(settings, results, seeds=1, references={ALL: [tmp_path / "raw"]})[0].read_text()
    assert "tok:13a" in page and "`, of detokenised text; one seed." in page
    sentences = read_table(tmp_path).sentences  # the report shows tokens, beside those of the data
    assert sentences.systems["ours"] == tokens and sentences.references == [REFERENCES[:4]]


def test_a_table_of_several_test_sets(tmp_path):
    """A column for each test and for all of them as one corpus, with significance and several references."""
    rows = [Row(name=name, arch="rnnsearch") for name in ("base", "ours", "failed")]
    rows[1].published_tests, rows[1].published = {"MT02": 41.0, "MT03": 39.07}, 37.5
    rows += [Row(name="coverage", published_tests={"MT03": 34.49}), Row(name="other", published=20.0)]
    table = Table(title="Mine", baseline="base", tests={"MT02": "test", "MT03": "test1"}, rows=rows)
    settings = Settings(table, Profile(), "data", tmp_path)
    jobs = settings.jobs(2)
    words = {("base", "test"): "cat", ("base", "test1"): "old", ("ours", "test"): "x here", ("ours", "test1"): "big"}
    for job in jobs[:2] + jobs[3:5]:
        job.folder.path.mkdir(parents=True)
        for subset in ("test", "test1"):
            text = worse(words[job.row.name, subset])
            job.folder.result(f"generate.{subset}").write_text(generated(text[: 18 if subset == "test" else 9]))
    jobs[2].folder.path.mkdir(parents=True)
    jobs[2].folder.result("generate.test1").write_text(generated(REFERENCES))  # the other set is missing
    references = {"MT02": [REFERENCES, worse("z here")], "MT03": [worse("dog")[:9], REFERENCES[:9]]}
    results = collect(settings, jobs, {jobs[2].folder: "the reason"}, references)

    base, ours, failed, *_ = results
    parts = {
        row: [Translations(worse(words[row, "test"]), references["MT02"])]
        + [Translations(worse(words[row, "test1"])[:9], references["MT03"])]
        for row in ("base", "ours")
    }
    for name, *of_rows in zip(("MT02", "MT03"), parts["base"], parts["ours"], strict=True):
        assert ours.tests[name].value == score(of_rows[1], Score())["bleu"]
        assert ours.tests[name].deviation == 0
        assert ours.tests[name].p == significance(*([part] * 2 for part in of_rows), Score())
        assert base.tests[name].p is None and failed.tests[name].value is None
    whole = {row: joined(of_row) for row, of_row in parts.items()}
    assert len(whole["ours"].hypotheses) == 27 and ours.value == score(whole["ours"], Score())["bleu"]
    assert ours.p == significance(*([whole[row]] * 2 for row in ("base", "ours")), Score())
    assert len({ours.value, *(of_test.value for of_test in ours.tests.values())}) == 3
    assert ours.runs[0]["tests"]["MT03"]["signature"].startswith("nrefs:2")

    files = {name: [tmp_path / f"{name}.{i}" for i in range(2)] for name in references}
    for name, paths in files.items():
        for path, lines in zip(paths, references[name], strict=True):
            path.write_text("".join(f"{line}\n" for line in lines))
    page = write(settings, results, seeds=2, references=files)[0].read_text()
    header, _, *cells = [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert header[:5] == ["", "BLEU, MT02", "BLEU, MT03", "BLEU, ALL", "chrF2"]
    assert header[-3:] == ["published BLEU, MT02", "published BLEU, MT03", "published BLEU, ALL"]
    by_name = {row[0]: row for row in cells}
    assert by_name["ours"][2] == f"{ours.tests['MT03'].value:.2f} ± 0.00 (p = {p_value(ours.tests['MT03'].p)})"
    assert by_name["ours"][3] == f"{ours.value:.2f} ± 0.00 (p = {p_value(ours.p)})" and ours.p < 0.0005
    assert by_name["ours"][-3:] == ["41.00", "39.07", "37.50"] and by_name["base"][-3:] == ["", "", ""]
    assert by_name["coverage"][-3:] == ["–", "34.49", "–"] and by_name["other"][-3:] == ["–", "–", "20.00"]
    assert by_name["failed"][1:4] == ["–", "–", "failed"] and by_name["coverage"][1:4] == ["–"] * 3
    assert "\nALL: the sentences of all tests as one corpus, which chrF2 is of, too.\n" in page
    assert page == table_page(read_record(tmp_path / "table.json"))

    finished = read_table(tmp_path)
    assert finished.sentences.systems["ours"] == whole["ours"].hypotheses
    assert finished.sentences.references == whole["ours"].references
    files["MT03"][1].write_text("changed\n")
    with pytest.raises(ValueError, match=r"MT03.1: other contents than when the table was made"):
        read_table(tmp_path)


def test_parts_of_speech(tmp_path):
    """BLEU of nouns, and of nouns and verbs, in all tests as one corpus with two references; the mean over seeds."""
    rows = [Row(name=name, arch="rnnsearch") for name in ("ours", "failed")]
    rows[0].published_parts = {"NN": [50.0, 40.0, 30.0, 0.0]}
    rows.append(Row(name="theirs", published_parts={"NN&VB": [60.0, 50.0, 40.0, 30.0]}))
    tests, parts = {"A": "test", "B": "test1"}, ["NN", "NN&VB"]
    table = Table(title="Mine", score=Score(lowercase=True), tests=tests, parts_of_speech=parts, rows=rows)
    settings = Settings(table, Profile(), "data", tmp_path)
    for job, words in zip(settings.jobs(2)[::2], ("cat", "sees"), strict=True):  # what the two seeds do not translate
        job.folder.path.mkdir(parents=True)
        for subset, length in (("test", 18), ("test1", 9)):  # 9 and 6 lines have a cat, the others a dog
            text = [line.replace("sees", "Sees") for line in worse(words)[:length]]
            job.folder.result(f"generate.{subset}").write_text(generated(text))
    references = {"A": [REFERENCES, worse("cat")], "B": [REFERENCES[:9]] * 2}  # the length of 9 lines may be one less
    tagger = Tagger(r"sed -E 's/\b(cat|dog)\b/NNS/g; s/[Ss]ees/VBZ/g; s/\b[a-z]+\b/O/g'")
    results = collect(settings, settings.jobs(2), {}, references, tagger=tagger)
    of_nouns, of_both = (part.values for part in results[0].parts.values())
    assert of_nouns == pytest.approx([100 * (math.exp(1 - (27 - 9) / (27 - 15)) + 1) / 2, 0, 0, 0], abs=0.01)
    without_cats, without_verbs = math.exp(1 - (54 - 9) / (54 - 15)), math.exp(1 - (54 - 9) / 27)
    expected = [100 * (without_cats + without_verbs) / 2, 100 * without_cats / 2, 0, 0]
    assert of_both == pytest.approx(expected, abs=0.01)

    page = write(settings, results, seeds=2, tagger=tagger)[0].read_text()
    lines = page.partition("## Words by part of speech\n\n")[2].splitlines()
    header, _, *cells = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    names = [f"BLEU-{n}" for n in (1, 2, 3, 4)]
    assert header == ["tags", "", *names, *(f"published {name}" for name in names)]
    assert cells == [
        ["NN", "ours", f"{of_nouns[0]:.2f}", "0.00", "0.00", "0.00", "50.00", "40.00", "30.00", "0.00"],
        ["NN", "failed", *["–"] * 4, *[""] * 4],
        ["NN", "theirs", *["–"] * 4, *[""] * 4],
        ["NN&VB", "ours", f"{of_both[0]:.2f}", f"{of_both[1]:.2f}", "0.00", "0.00", *[""] * 4],
        ["NN&VB", "failed", *["–"] * 4, *[""] * 4],
        ["NN&VB", "theirs", *["–"] * 4, "60.00", "50.00", "40.00", "30.00"],
    ]
    assert f", of ALL; mean over seeds. Tagger: `{tagger.command}`." in page and "not scored" not in page
    record = read_record(tmp_path / "table.json")
    assert record.rows == results and page == table_page(record)

    page = write(settings, collect(settings, settings.jobs(2), {}), seeds=2)[0].read_text()
    assert "Words by part of speech (NN, NN&VB): not scored; `--tagger COMMAND` tags and scores them." in page
    assert "BLEU-1" not in page and page == table_page(read_record(tmp_path / "table.json"))


def test_values_of_other_tests_are_left_out(tmp_path):
    """A profile chooses one set for a table whose published values are of several."""
    rows = [Row(name="ours", arch="rnnsearch", published=37.5), Row(name="theirs", published_tests={"A": 34.49})]
    table = Table(title="Mine", tests={"A": "test1", "B": "test2"}, rows=rows)
    settings = Settings(table, Profile(tests={}), "data", tmp_path)
    page = write(settings, collect(settings, settings.jobs(1), {}), seeds=1)[0].read_text()
    assert "published BLEU |" in page and "| ours | not finished |" in page and "| theirs |" not in page


def test_pictures_of_another_table_are_removed(tmp_path):
    for name in ("table.png", "learning_curves.png"):
        (tmp_path / name).touch()
    settings = Settings(Table(title="Mine", rows=[Row(name="ours", arch="rnnsearch")]), Profile(), "data", tmp_path)
    write(settings, collect(settings, settings.jobs(1), {}), seeds=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.json", "table.md"]


def test_the_page_says_where_weights_models_and_published_values_come_from(tmp_path):
    rows = [Row(name="ours", label="a | b", arch="rnnsearch"), Row(name="theirs", published=30.0, source="Table 9")]
    settings = Settings(Table(title="Mine", average=4, user_dir="/my/models", rows=rows), Profile(), "data", tmp_path)
    page = write(settings, collect(settings, settings.jobs(1), {}), seeds=1)[0].read_text()
    assert "checkpoint: mean of the last 4 epochs\npackages of models: /my/models\n" in page
    assert "theirs\n  published in: Table 9\n" in page and "| a \\| b |" in page


def test_a_curve_with_any_text(tmp_path):
    """A dollar sign begins no formula, and a long title has several lines."""
    table = Table(title="Costs of $\\lamda and $5 " * 8, curve="Größe $", rows=[])
    results = [Result("ours", "Ours", [], value=30.0, x=1.0, series="$a_$")]
    figure = plot_curve(table, results)
    figure.savefig(tmp_path / "table.png")
    (axes,) = figure.axes
    assert axes.get_title().count("\n") >= 2 and max(map(len, axes.get_title().splitlines())) <= 60


def test_a_curve_has_the_deviations_that_are_known():
    results = [Result("a", "A", [], value=30.0, x=1.0), Result("b", "B", [], value=31.0, deviation=0.5, x=2.0)]
    (axes,) = plot_curve(Table(title="T", curve="x", rows=[]), results).axes
    (bars,) = axes.containers[0].lines[2]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[30.0, 30.0], [30.5, 31.5]]


def test_a_seed_that_fails_does_not_hide_the_others(tmp_path):
    settings = Settings(Table(title="A table", rows=[Row(name="ours", arch="rnnsearch")]), Profile(), "data", tmp_path)
    jobs = settings.jobs(3)
    for job in jobs[:2]:
        job.folder.path.mkdir(parents=True)
        job.folder.result("generate").write_text(generated(REFERENCES if job.folder.seed == 1 else worse("cat")))
    (result,) = collect(settings, jobs, {jobs[2].folder: "the reason"})
    page = write(settings, [result], seeds=3)[0].read_text()
    assert f"| ours | {result.value:.2f} ± {result.deviation:.2f} (2 of 3 runs, failed) |" in page


def test_a_table_without_a_paper_has_nothing_published(tmp_path):
    settings = Settings(Table(title="Mine", data="captions", rows=[]), Profile(), "data", tmp_path)
    page = write(settings, [Result("ours", "Ours", [], value=30.0)], seeds=1)[0].read_text()
    assert "ublished" not in page.split("```")[0] and "Data: captions.\n" in page and "\n.\n" not in page


def test_the_page_has_the_flags_that_each_row_ran_with(tmp_path):
    rows = [
        Row(name="ours", label="Ours, wide", arch="rnnsearch", train="--max-update 850", optimizer="--optimizer sgd"),
        Row(name="helper", arch="abd", hidden=True, member=1, generate="--beam 9"),
        Row(name="both", path="{ours}:{helper}", generate="--beam 7"),
        Row(name="theirs", published=30.0),
    ]
    table = Table(title="Mine", optimizer="--optimizer adam", train="--max-update 500", generate="--beam 5", rows=rows)

    def page(profile):
        settings = Settings(table, profile, "data", tmp_path, train=("--cpu",))
        return write(settings, collect(settings, settings.jobs(1), {}), seeds=1)[0].read_text()

    ours = "\nours\n  label: Ours, wide\n  arch: rnnsearch\n"
    found = page(Profile(archs={"rnn*": "--adam-betas '(0.9, 0.98)'"}))
    assert "\ntrain: --max-update 500\n" in found and "\nmore of train: --cpu\n" in found
    assert (
        f"{ours}  own optimizer: --optimizer sgd\n  train: --max-update 850 --adam-betas '(0.9, 0.98)'\n"
        "helper\n  arch: abd\n  member: 1\n"
        "both\n  path: {ours}:{helper}\n  generate: --beam 7\n```" in found
    )
    replaced = page(Profile(optimizer="--optimizer fused_adam"))  # a profile's optimizer replaces those of rows, too
    assert f"{ours}  train: --max-update 850\n" in replaced and "\noptimizer: --optimizer fused_adam\n" in replaced
