"""Table files: what they may hold, and those of the papers."""

import shlex
from itertools import product
from pathlib import Path

import pytest
import yaml

from conftest import LONG, ROOT
from lwc_fairseq.cli import parser
from lwc_fairseq.cli.table import check_flags
from lwc_fairseq.experiments.jobs import Settings
from lwc_fairseq.experiments.table_file import ALL, Profile, load_profile, load_table
from lwc_fairseq.typed_yaml import read_yaml

CONFIGS = sorted((ROOT / "examples" / "configs").glob("*.yaml"))
TABLES = sorted((ROOT / "examples" / "tables").glob("*.yaml"))
PROFILES = sorted((ROOT / "examples" / "tables" / "profiles").glob("*.yaml"))
RECIPES = [
    (ROOT / "examples" / name, profile and ROOT / "examples" / profile)
    for name, profile in (
        ("quickstart/models.yaml", None),
        ("multi30k/models.yaml", None),
        ("multi30k/models.yaml", "multi30k/narrow.yaml"),
        ("multi30k/windows.yaml", None),
        ("tables/deepatt_table2.yaml", None),  # of alignments, whose commands are not fairseq's
    )
]
TABLE = """
title: A table
optimizer: --optimizer adam --lr 1e-3
train: --max-update 5
rows:
  - {name: ours, arch: rnnsearch, train: "--hidden-dim 8"}
  - {name: r2l, arch: rnnsearch, train: --reverse-target, generate: --reverse-target, hidden: true}
  - {name: both, path: "{ours}:{ours}", generate: "--agreement-path {r2l}"}
  - {name: theirs, published: 30.0}
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.yaml"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("published: 30.0", "publishd: 30.0"), "row theirs: publishd: no such key; the keys are name, label,"),
        (("title: A", "titel: A"), "titel: no such key; the keys are title, "),
        (("title: A table", "paper: A"), "title is missing"),
        (("30.0", "high"), "row theirs: published: high: give a number"),
        (('arch: rnnsearch, train: "', 'arch: rnnsaerch, train: "'), "row ours: arch rnnsaerch: no such preset"),
        (("{r2l}", "{l2r}"), "row both: {l2r}: no row of that name is trained before it"),
        (("name: theirs", "name: ours"), "row 'ours': names are of a-z, 0-9, _ and ., each used once"),
        (("name: theirs", "name: a/b"), "row 'a/b': names are of a-z"),
        (("name: both, path", "name: both, arch: abd, path"), "row both: give arch or path, not both"),
        (("--hidden-dim 8", "--hidden-dim '8"), "No closing quotation"),
        (("rows:", "baseline: mine\nrows:"), "baseline mine: no such row"),
        (("rows:", "metric: ter\nrows:"), "metric ter: choose bleu or aer"),
        (("rows:", "significance: boot\nrows:"), "significance boot: choose randomization or bootstrap"),
        (("rows:", "average: -1\nrows:"), "average -1: must not be negative"),
        (("{ours}:{ours}", "{ours} {ours}"), "row both: path {ours} {ours}: give one path"),
        (("{r2l}", "{R2L}"), "row both: {R2L}: no row of that name"),
        (("title: A", "title: [A"), "not YAML"),
        (("name: ours, ", ""), "row 1: name is missing"),
        (("rows:", "rows: 3\nothers:"), "rows: give a list of rows"),
        (("rows:", "rows: []\nothers:"), "rows: the list is empty"),
        (("name: both, ", "name: both, baseline: mine, "), "baseline mine: no such row"),
        (("rows:", "baseline: theirs\nrows:"), "baseline theirs: this row has no translations"),
        (("rows:", "baseline: ours\nmetric: aer\nrows:"), "baseline ours: significance is tested for BLEU only"),
        (("published: 30.0", "label: Theirs"), "row theirs: give arch or path or published"),
        (
            ("{name: r2l,", "{name: l2r, arch: abd, label: ours}\n  - {name: r2l,"),
            "row l2r: label ours: another row has it",
        ),
        (("published: 30.0", "published: 30.0, label: ours"), "row theirs: label ours: another row has it"),
        (("published: 30.0", "train: --lr 1"), "row theirs: it has flags, but no arch to train"),
        (
            ("rows:", "score: {tokenise: zh}\nrows:"),
            "score: tokenise: no such key; the keys are tokenize, lowercase, detok",
        ),
        (("rows:", "tests: {ALL: test}\nrows:"), "tests: 'ALL': give a name without blanks and =, which is not ALL"),
        (("rows:", "tests: {a=b: test}\nrows:"), "tests: 'a=b': give a name without blanks and =, which is not ALL"),
        (("rows:", "tests: {a: test/1}\nrows:"), "tests: a: test/1: give the name of one set"),
        (("rows:", "tests: {a: test, b: test}\nrows:"), "tests: a: test: another test is of the same set"),
        (("rows:", "tests: {a: test}\nmetric: aer\nrows:"), "tests: only translations have several test sets"),
        (("rows:", "tests: [test, test1]\nrows:"), "tests: not one value: give keys and values"),
        (
            ("published: 30.0", "published_tests: {a: 30.0}"),
            "row theirs: published_tests: a: the table's `tests` has no",
        ),
        (
            ("rows:", "parts_of_speech: [NN, 'NN,VB']\nrows:"),
            "parts_of_speech: 'NN,VB': give the beginnings of tags, j",
        ),
        (("rows:", "parts_of_speech: [NN, NN]\nrows:"), "parts_of_speech: NN: it is there twice"),
        (("rows:", "parts_of_speech: NN\nrows:"), "parts_of_speech: NN: give a list"),
        (("rows:", "parts_of_speech: [{NN: VB}]\nrows:"), "parts_of_speech: not one value: give a text"),
        (("rows:", "parts_of_speech: [NN]\nmetric: aer\nrows:"), "parts_of_speech: only translations have scores of"),
        (
            ("published: 30.0", "published_parts: {NN: [1, 2, 3, 4]}"),
            "row theirs: published_parts: NN: the table's `parts_of_speech` does not have it",
        ),
        (
            ("published: 30.0", "published_parts: {NN: [1, 2]}"),
            "row theirs: published_parts: NN: 2 values: give BLEU-1",
        ),
        (("published: 30.0", "published_parts: {NN: [a]}"), "row theirs: published_parts: NN: a: give a number"),
        (("rows:", "average: 2.5\nrows:"), "average: 2.5: give a whole number"),
        (("rows:", 'average: "2"\nrows:'), 'average: "2": give a whole number, without quotation marks'),
        (("rows:", "score: {lowercase: on}\nrows:"), "score: lowercase: on: give true or false"),
        (("rows:", "score: zh\nrows:"), "score: zh: give keys and values"),
        (("title: A table", "title: [A, table]"), "title: not one value: give a text"),
        (("rows:", "trials: --lr 1\nrows:"), "trials: --lr 1: give a list"),
        (("rows:", "trials: [--lr 1]\nrows:"), "trials: give two or more flags that differ, or none"),
        (("rows:", "trials: [--lr 1, --lr 2, --lr 1]\nrows:"), "trials: give two or more flags that differ, or none"),
        (("rows:", "trials: [[--lr 1], --lr 2]\nrows:"), "trials: not one value: give a text"),
        (("name: ours, ", "name: ours, trials: [a], "), "row ours: trials: give two or more flags that differ, or"),
        (("rows:", "trials: [--lr 1, --lr '2]\nrows:"), "trials: --lr '2: No closing quotation"),
        (("name: both, ", "name: both, trials: [a, b], "), "row both: it has trials, but no arch to train"),
        (("title: A table", "title:"), "title: nothing: give a text"),
        (("published: 30.0", "published: .nan"), "row theirs: published: .nan: give a number"),
        (("hidden: true", 'hidden: "false"'), 'row r2l: hidden: "false": give true or false, without quotation marks'),
        (("title: A table", "title: A\ntitle: B"), ", line 3: not YAML: title: this key occurs twice"),
        (("hidden: true", "hidden: true, hidden: false"), ", line 7: not YAML: hidden: this key occurs twice"),
        (("hidden: true", "hidden: true, [a]: false"), ", line 7: not YAML: a key must be a text"),
        (("title: A table", f"title: {'[' * 3000}"), "not YAML: it is nested too deeply"),
        (("published: 30.0", "published: 3, label: reference"), "row theirs: label reference, as the reference itself"),
        (("published: 30.0", r'published: 3, label: "a\tb"'), r"row theirs: label 'a\tb': give a name without tabs"),
        (("name: theirs", "name: table.md"), "row table.md: the table itself writes a file of this name"),
        (("rows:", "user_dir: nowhere/mine\nrows:"), "table.yaml: user_dir: nowhere/mine: there is no such folder"),
    ],
)
def test_a_wrong_file_is_refused_by_name(table, change, message):
    assert change[0] in TABLE
    table.write_text(TABLE.replace(*change))
    with pytest.raises(ValueError) as refused:
        load_table(table)
    assert str(refused.value).startswith(str(table)) and message in str(refused.value)


def test_texts_are_read_as_they_are_written(table):
    """By YAML's own rules these would be a truth value, a number, a number in another base, and a date."""
    more = (
        "{name: no, label: NO, published: 1e1}, {name: on, label: 1.10, series: 0x10, source: 2020-01-01, published: 3}"
    )
    table.write_text(
        f"title: 12:30\nrows: [{more}, &a {{name: a, arch: abd, label: ~}}, {{<<: *a, name: b, label: 'null'}}]"
    )
    read = load_table(table)
    assert read.title == "12:30"
    rows = [(row.name, row.label, row.series, row.source, row.published, row.arch) for row in read.rows]
    assert rows == [
        ("no", "NO", None, None, 10.0, None),
        ("on", "1.10", "0x10", "2020-01-01", 3.0, None),
        ("a", None, None, None, None, "abd"),
        ("b", "null", None, None, None, "abd"),
    ]


def test_values_of_a_profile_have_their_types(tmp_path):
    (tmp_path / "profile.yaml").write_text("archs: {lwc_*: no}\nscore: {tokenize: on}\naverage: 010")
    profile = load_profile(tmp_path / "profile.yaml")
    assert (profile.archs, profile.score.tokenize, profile.average) == ({"lwc_*": "no"}, "on", 10)
    for text, message in (
        ("archs: {lwc_*: [--layers, 6]}", r"archs: lwc_\*: not one value: give a text"),
        ("archs: {lwc_*: --windows '3}", "flags of the profile: --windows '3: No closing quotation"),
        ('generate: --beam "5', 'flags of the profile: --beam "5: No closing quotation'),
        ("average: -1", "average -1: must not be negative"),
    ):
        (tmp_path / "profile.yaml").write_text(text)
        with pytest.raises(ValueError, match=f"profile.yaml: {message}"):
            load_profile(tmp_path / "profile.yaml")


@pytest.mark.parametrize("name", ["sources.yaml", *(f"configs/{path.name}" for path in CONFIGS)])
def test_no_text_of_other_files_looks_like_something_else(name):
    """These are read by other programs, by YAML's own rules; both readings agree, and no key occurs twice."""
    path = ROOT / "examples" / name

    def texts(value):
        if isinstance(value, dict):
            return {key: texts(part) for key, part in value.items()}
        return [texts(part) for part in value] if isinstance(value, list) else value

    written, read = read_yaml(path), yaml.safe_load(path.read_text())
    for key, part in texts(written).items():
        for name, value in part.items():
            if isinstance(read[key][name], bool):
                assert value in ("true", "false"), (key, name)
            elif isinstance(value, str) and not isinstance(read[key][name], str):
                assert float(value) == float(read[key][name]), (key, name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.yaml: No such file"):
        load_table(tmp_path / "none.yaml")


def test_rows_are_chosen_with_those_that_they_need(table):
    chosen = load_table(table, ["both"])
    assert [(row.name, row.hidden) for row in chosen.rows] == [("ours", True), ("r2l", True), ("both", False)]
    with pytest.raises(ValueError, match=r"--rows all: .* has no such row; it has ours, r2l, both, theirs"):
        load_table(table, ["all"])


def test_commands(table):
    """Flags of the table, of the row, of the profile, of the command line; checkpoints in place of their rows."""
    profile = Profile(train="--max-update 9", archs={"rnn*": "--embed-dim 4", "lwc*": "--layers 2"})
    settings = Settings(load_table(table), profile, "data", Path("out dir"), train=("--cpu",), generate=("--beam", "3"))
    settings.table.row("r2l").hidden = False
    ours, r2l, both = settings.jobs(1)
    words = shlex.join(ours.train)
    assert "--optimizer adam --lr 1e-3 --max-update 9 --hidden-dim 8 --embed-dim 4 --cpu" in words
    assert "--seed 1" in words and "--save-dir 'out dir/ours/seed1'" in words
    assert r2l.generate[-3:] == ["--reverse-target", "--beam", "3"]
    assert both.train is None
    assert [need.path for need in both.needs] == [Path("out dir/ours/seed1"), Path("out dir/r2l/seed1")]
    own = "out dir/ours/seed1/checkpoint_best.pt"
    assert both.generate[both.generate.index("--path") + 1] == f"{own}:{own}"
    assert "out dir/r2l/seed1/checkpoint_best.pt" in both.generate


def test_commands_of_trials(table):
    """Trials follow the flags of the row and of the profile; those of the command line still come last."""
    table.write_text(
        TABLE.replace("rows:", "average: 5\ntrials: [--lr 1, --lr 2]\nrows:").replace(
            "hidden: true", "trials: [], hidden: true"
        )
    )
    profile = Profile(archs={"rnn*": "--embed-dim 4"})
    settings = Settings(load_table(table), profile, "data", Path("out"), train=("--cpu",))
    trials, (ours, r2l, both) = settings.trials(), settings.jobs(1)
    assert [job.folder.path for job in trials] == [Path("out/ours/trial1"), Path("out/ours/trial2")]
    assert [job.name for job in trials] == ["ours, trial 1", "ours, trial 2"]
    for number, job in enumerate(trials, 1):
        assert list(job.steps()) == ["train"] and "--no-epoch-checkpoints" in job.train
        assert job.train[-7:] == ["--hidden-dim", "8", "--embed-dim", "4", "--lr", str(number), "--cpu"]
        assert job.train[job.train.index("--save-dir") + 1] == f"out/ours/trial{number}"
    assert [path.path.name for path in ours.trials] == ["trial1", "trial2"] and not ours.has_flags
    assert r2l.has_flags and both.has_flags  # nothing is tried for them
    assert Settings(load_table(table), Profile(trials=[]), "data", Path("out")).trials() == []
    profile = Profile(trials=["--lr 3", "--lr 4"])
    assert [job.row.name for job in Settings(load_table(table), profile, "data", Path("out")).trials()] == ["ours"] * 2
    with pytest.raises(ValueError, match=r"row nsc: trials: all trials run before the rows that this row uses \(r2l\)"):
        table.write_text(TABLE + "  - {name: nsc, arch: nsc_hs, train: '--reverse-model {r2l}', trials: [a, b]}\n")
        Settings(load_table(table), Profile(), "data", Path("out"))


def test_flags_of_alignments(table):
    """Those of the table, of the row and of the command line; a profile's are for fairseq-generate."""
    table.write_text(
        "title: Links\nmetric: aer\ngenerate: --layer 1\nrows: [{name: ours, arch: abd, generate: --head 0}]"
    )
    profile = Profile(generate="--beam 3", tests={"A": "test1"})
    settings = Settings(load_table(table), profile, "data", Path("out"), generate=("--subset", "valid"))
    assert settings.job(settings.table.row("ours"), 1).generate[5:] == shlex.split("--layer 1 --head 0 --subset valid")
    assert settings.tests == {ALL: "valid"} and list(settings.jobs(1)[0].steps()) == ["train", "generate"]


@pytest.mark.parametrize(("flags", "subset"), [("", "test"), ("--gen-subset valid", "valid"), ("--gen-subset=a", "a")])
def test_the_set_that_is_translated(table, flags, subset):
    settings = Settings(load_table(table), Profile(), "data", Path("out"), generate=tuple(shlex.split(flags)))
    assert settings.tests == {ALL: subset}


def test_the_set_that_rows_translate(table):
    """That of fairseq-generate, if the flags of a row name one; all scored rows need the same."""
    table.write_text(TABLE.replace('"--hidden-dim 8"', '"--hidden-dim 8", generate: --gen-subset valid'))
    with pytest.raises(ValueError, match="the rows translate different sets, test, valid: let all translate one"):
        Settings(load_table(table), Profile(), "data", Path("out"))
    assert Settings(load_table(table, ["ours"]), Profile(), "data", Path("out")).tests == {ALL: "valid"}
    of_the_paper = load_table(ROOT / "examples" / "tables" / "abd_figure2.yaml")
    assert Settings(of_the_paper, Profile(), "data", Path("out")).tests == {ALL: "valid"}
    settings = Settings(of_the_paper, Profile(), "data", Path("out"), generate=("--gen-subset", "test1"))
    assert settings.tests == {ALL: "test1"}


def test_each_named_test_is_translated_in_a_step_of_its_own(table):
    table.write_text(TABLE.replace("rows:", "tests: {A: test, B: test1}\nrows:"))
    settings = Settings(load_table(table), Profile(), "data", Path("out"), generate=("--beam", "3"))
    ours, r2l, _ = settings.jobs(1)
    assert list(ours.steps()) == ["train", "generate.test", "generate.test1"] and list(r2l.steps()) == ["train"]
    for subset in ("test", "test1"):
        assert ours.steps()[f"generate.{subset}"][-4:] == ["--beam", "3", "--gen-subset", subset]
        assert ours.folder.result(f"generate.{subset}") == Path(f"out/ours/seed1/generated.{subset}.txt")
    assert len(list(ours.shell_lines())) == 3
    (alone, *_) = Settings(load_table(table), Profile(tests={}), "data", Path("out")).jobs(1)
    assert list(alone.steps()) == ["train", "generate"] and "--gen-subset" not in alone.steps()["generate"]
    with pytest.raises(ValueError, match=r"--gen-subset valid: the table names its tests \(A, B\)"):
        Settings(load_table(table), Profile(generate="--gen-subset valid"), "data", Path("out"))
    table.write_text("tests: {A: a/b}")
    with pytest.raises(ValueError, match=r"table.yaml: tests: A: a/b: give the name of one set"):
        load_profile(table)


def test_a_row_that_others_need_is_trained_alone(table):
    _, r2l, both = Settings(load_table(table), Profile(), "data", Path("out")).jobs(1)
    assert r2l.train and r2l.generate is None and len(list(r2l.shell_lines())) == 1
    assert both.generate and len(list(both.shell_lines())) == 1


def test_seeds(table):
    settings = Settings(load_table(table), Profile(), "data", Path("out"))
    jobs = settings.jobs(2)
    assert [(job.row.name, job.folder.seed) for job in jobs] == [
        (name, s) for s in (1, 2) for name in ("ours", "r2l", "both")
    ]
    assert [need.path for need in jobs[5].needs] == [Path("out/ours/seed2"), Path("out/r2l/seed2")]
    table.write_text(TABLE.replace("--hidden-dim 8", "--seed 3"))
    with pytest.raises(ValueError, match="--seeds 2: the flags of ours fix a --seed"):
        Settings(load_table(table), Profile(), "data", Path("out")).jobs(2)
    table.write_text(TABLE)
    with pytest.raises(ValueError, match="--seeds 2: the flags of ours fix a --seed"):
        Settings(load_table(table), Profile(), "data", Path("out"), train=("--seed=7",)).jobs(2)


def test_members_of_an_ensemble_have_seeds_of_their_own(table):
    table.write_text(TABLE.replace("hidden: true", "hidden: true, member: 2"))
    jobs = Settings(load_table(table), Profile(), "data", Path("out")).jobs(2)
    seeds = [job.train[job.train.index("--seed") + 1] for job in jobs if job.train]
    assert seeds == ["1", "201", "2", "202"]


class TestPapers:
    @pytest.mark.parametrize(
        ("path", "profile"),
        [
            *(
                pytest.param(table, profile, marks=() if profile.stem == "demo" else LONG)
                for table, profile in product(TABLES, PROFILES)
            ),
            *RECIPES,
        ],
        ids=lambda path: path.stem if path else "as it is",
    )
    def test_every_flag_is_known(self, path, profile):
        """Those of every row, to the commands that they are for and to the models."""
        settings = Settings(load_table(path), load_profile(profile), "data", Path("out"))
        jobs = [*settings.trials(), *settings.jobs(1)]
        args = parser().parse_args(["table", str(path), "--data", "data", "--out", "out"])
        check_flags(jobs, args.parsers)

    def test_all_tables_are_there(self):
        names = " ".join(path.stem for path in TABLES)
        for wanted in ("lwc_table1_", "lwc_table2_", "lwc_table3", "lwc_table4", "deepatt_table1", "deepatt_table5"):
            assert wanted in names
        for wanted in (
            "deepatt_table3",
            "deepatt_table6",
            "deepatt_table7",
            "deepatt_figure3",
            "abd_table2",
            "abd_table4",
            "abd_figure2",
        ):
            assert wanted in names

    def test_deepatt_tests_significance_as_its_paper(self):
        for path in TABLES:
            table = load_table(path)
            if table.baseline:
                assert table.significance == ("bootstrap" if path.stem.startswith("deepatt") else "randomization")

    def test_published_values_say_where_they_stand(self):
        for path in TABLES:
            for row in load_table(path).rows:
                assert row.source or not row.has_published_value, (path.name, row.name)
