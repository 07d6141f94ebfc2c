"""`lwc-fairseq table` and `average`, with real training on a tiny corpus."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conftest import LONG, ROOT, refusal, refused, run
from lwc_fairseq import cli
from lwc_fairseq.experiments.identity import hardware, versions
from lwc_fairseq.preparation import write_preparation

TABLE = """
title: Two rows
optimizer: --optimizer adam --lr 3e-3
train: --criterion cross_entropy --max-tokens 400 --max-epoch 3
generate: --beam 2
average: 2
baseline: rnnsearch
rows:
  - {name: rnnsearch, arch: rnnsearch, published: 34.06, train: "--embed-dim 8 --hidden-dim 8 --init-std 0.1"}
  - {name: lwc, arch: lwc_transformer_small, published: 35.07, train: "--layers 2 --embed-dim 16 --attention-heads 2"}
  - {name: both, path: "{rnnsearch}:{lwc}"}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "table.yaml"
    path.write_text(TABLE)
    return path


@pytest.fixture(scope="module")
def command(table, tiny_data):
    return ("lwc-fairseq", "table", table, "--data", tiny_data, "--train=--cpu", "--generate=--cpu", "--out")


@pytest.fixture(scope="module")
def finished(command, tmp_path_factory):
    """The result of an uninterrupted run."""
    out = tmp_path_factory.mktemp("undisturbed")
    done = run(*command, out)
    assert "100%" in done.stderr and "wrote" in done.stderr and "INFO" not in done.stderr
    assert "| rnnsearch |" in done.stdout and "| both |" in done.stdout
    return out


def rows(out: Path) -> list[dict]:
    return json.loads((out / "table.json").read_text())["rows"]


def test_the_table(finished):
    assert [row["name"] for row in rows(finished)] == ["rnnsearch", "lwc", "both"]
    assert all(row["value"] is not None and row["failed"] is None for row in rows(finished))
    assert rows(finished)[1]["parameters"] > 0 and rows(finished)[1]["updates"] > 3


def test_the_table_can_be_watched(finished):
    pytest.importorskip("plotille")
    lines = run("lwc-fairseq", "watch", finished, "--once").stdout.splitlines()
    names = [re.match(r"[abc] (\w+), seed 1 +done\b", line)[1] for line in lines[2:5]]
    assert ": 3 done (" in lines[0] and names == ["rnnsearch", "lwc", "both"]
    losses = [run["valid_loss"] for row in rows(finished) for run in row["runs"] if "valid_loss" in run]
    assert [float(line.split()[-1]) for line in lines[2:4]] == losses and "validation loss" in lines[5]


def test_the_table_names_its_baseline_and_each_rows_flags(finished):
    page = (finished / "table.md").read_text()
    assert "p, against rnnsearch" in page and "chrF2: sacrebleu, `nrefs:1|" in page
    common, own = page.split("Flags of each row.")
    assert "--criterion cross_entropy" in common and "more of train: --cpu" in common
    assert "--layers" not in common and "--layers 2 --embed-dim 16" in own.partition("\nlwc\n")[2]
    assert "\nboth\n  path: {rnnsearch}:{lwc}\n" in own


def test_the_last_checkpoints_are_averaged(finished):
    folder = finished / "lwc" / "seed1"
    average, *parts = (
        torch.load(folder / name)["model"] for name in ("averaged.pt", "checkpoint2.pt", "checkpoint3.pt")
    )
    for name, value in average.items():
        assert torch.allclose(value, sum(part[name] for part in parts) / 2, atol=1e-7), name


def test_weights_with_several_names_stay_one(tiny_data, tmp_path):
    sizes = ("--encoder-layers", "1", "--decoder-layers", "1", "--encoder-embed-dim", "8", "--decoder-embed-dim", "8")
    shared = (
        "--arch",
        "transformer",
        *sizes,
        "--share-all-embeddings",
        "--task",
        "translation",
        "--no-epoch-checkpoints",
    )
    flags = ("--optimizer", "sgd", "--lr", "0.1", "--max-tokens", "400", "--max-update", "1", "--cpu")
    run("fairseq-train", tiny_data, *shared, *flags, "--save-dir", tmp_path)
    last, out = tmp_path / "checkpoint_last.pt", tmp_path / "averaged.pt"
    run("lwc-fairseq", "average", last, last, "--out", out)
    model, average = torch.load(last)["model"], torch.load(out)["model"]
    torch.testing.assert_close(average, model, rtol=0, atol=0)
    names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight")
    assert len({average[name].data_ptr() for name in names}) == 1


def test_average_refuses_what_does_not_belong_together(finished, tmp_path):
    one, other = (finished / name / "seed1" / "checkpoint_last.pt" for name in ("lwc", "rnnsearch"))
    assert "its weights are not those of" in refusal("average", one, other, "--out", tmp_path / "out.pt")
    assert "has 2 checkpoints of epochs (checkpoint1.pt and so on). fairseq-train keeps them without" in refused(
        "lwc-fairseq", "average", one.parent, "--last", "9", "--out", tmp_path / "out.pt"
    )
    (tmp_path / "no.pt").write_text("no")
    assert f"cannot read checkpoint {tmp_path / 'no.pt'}" in refusal(
        "average", one, tmp_path / "no.pt", "--out", tmp_path / "out.pt"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["no.pt"]


@LONG
def test_printed_commands_run_as_they_stand(command, finished, tmp_path):
    lines = run(*command, tmp_path / "by hand", "--dry-run").stdout.splitlines()
    assert len(lines) == 7 and not (tmp_path / "by hand").exists()
    for line in lines:
        run("bash", "-c", line)
    run(*command, tmp_path / "by hand", "--collect")
    assert rows(tmp_path / "by hand") == rows(finished)


def test_commands_of_rows_whose_trials_have_not_run_are_not_printed(table, tiny_data, tmp_path):
    """`both` needs `lwc`. The trials of `rnnsearch` have run."""
    tried = tmp_path / "table.yaml"
    tried.write_text(table.read_text().replace("rows:", "trials: [--lr 1, --lr 2]\nrows:"))
    for number, loss in ((1, 3), (2, 2)):
        folder = tmp_path / "out" / "rnnsearch" / f"trial{number}"
        folder.mkdir(parents=True)
        (folder / "trained").write_text("1.0\n")
        (folder / "train.log").write_text(f'| valid | {{"valid_loss": "{loss}", "valid_num_updates": "7"}}\n')
    done = run("lwc-fairseq", "table", tried, "--data", tiny_data, "--out", tmp_path / "out", "--dry-run")
    folders = [shlex.split(line)[2].removeprefix(f"{tmp_path}/out/") for line in done.stdout.splitlines()]
    trials = [f"{row}/trial{number}" for row in ("rnnsearch", "lwc") for number in (1, 2)]
    assert folders == [*trials, *["rnnsearch/seed1"] * 3]
    assert "--lr 2 >> " in done.stdout.splitlines()[4]
    assert "the flags of lwc, both depend on trials: when the commands of the trials have run" in done.stderr


def test_a_row_whose_trials_have_no_losses_has_failed(table, tiny_data, tmp_path):
    tried = tmp_path / "table.yaml"
    tried.write_text(table.read_text().replace("rows:", "trials: [--lr 1, --lr 2]\nrows:"))
    folders = [tmp_path / "out" / "rnnsearch" / f"trial{number}" for number in (1, 2)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "trained").write_text("1.0\n")
        (folder / "train.log").write_text('| valid | {"valid_loss": "nan", "valid_num_updates": "7"}\n')
    words = ("lwc-fairseq", "table", tried, "--data", tiny_data, "--out", tmp_path / "out")
    reason = f"no trial has a validation loss; see {folders[0] / 'train.log'}"
    done = run(*words, "--dry-run")
    assert f"row rnnsearch: {reason}" in done.stderr and "rnnsearch/seed1" not in done.stdout
    done = run(*words, "--collect", check=False)
    assert done.returncode == 1 and f"rnnsearch, seed1: failed: {reason}" in done.stderr
    page = done.stdout
    assert "| rnnsearch | failed |" in page and "| lwc | not finished |" in page and "| both | failed |" in page


@LONG
def test_trials(table, tiny_data, tmp_path):
    """A learning rate of 1e-9 learns nothing. What was tried is kept, and found again."""
    tried = tmp_path / "table.yaml"
    tried.write_text(table.read_text().replace("rows:", "trials: [--lr 1e-9, --lr 3e-3]\nrows:"))
    words = ("lwc-fairseq", "table", tried, "--data", tiny_data, "--train=--cpu", "--generate=--cpu", "--out")
    page = run(*words, tmp_path / "out", "--rows", "rnnsearch").stdout
    assert re.search(
        r"\| rnnsearch \| --lr 1e-9 \| \d\.\d+ \|  \|\n\| rnnsearch \| --lr 3e-3 \| \d\.\d+ \| yes \|", page
    )
    log = (tmp_path / "out" / "rnnsearch" / "trial1" / "train.log").stat().st_mtime
    run(*words, tmp_path / "out", "--rows", "rnnsearch")
    assert (tmp_path / "out" / "rnnsearch" / "trial1" / "train.log").stat().st_mtime == log
    for line in run(*words, tmp_path / "by hand", "--rows", "rnnsearch", "--dry-run").stdout.splitlines():
        run("bash", "-c", line)
    for line in run(*words, tmp_path / "by hand", "--rows", "rnnsearch", "--dry-run").stdout.splitlines()[2:]:
        run("bash", "-c", line)
    run(*words, tmp_path / "by hand", "--rows", "rnnsearch", "--collect")
    assert rows(tmp_path / "by hand") == rows(tmp_path / "out")
    tried.write_text(tried.read_text().replace("1e-9", "1e-8"))
    assert "trial1/train.command has other flags" in refused(*words, tmp_path / "out", "--rows", "rnnsearch")


@pytest.mark.parametrize("phase", ["train", "generate"])
def test_flags_that_are_given_several_times_add_up(command, tmp_path, phase):
    """A recipe gives some, and its user more."""
    twice = (f"--{phase}", "--seed 7 --log-interval 3", f"--{phase}", "--seed 8")
    lines = run(*command, tmp_path / "out", "--dry-run", *twice).stdout.splitlines()
    chosen = [line for line in lines if f"fairseq-{phase} " in line]
    assert chosen and all("--cpu --seed 7 --log-interval 3 --seed 8" in line for line in chosen)


def test_told_to_end_it_says_what_it_stops_and_how_to_go_on(command, tmp_path):
    """Only the table receives the signal, and passes it on; the training that runs saves."""
    out, log = tmp_path / "out", tmp_path / "out" / "rnnsearch" / "seed1" / "train.log"
    long = [word if word != "--train=--cpu" else "--train=--cpu --max-epoch 100000" for word in command]
    with (tmp_path / "err").open("w") as errors:
        process = start(*long, out, stderr=errors)
        wait_for(process, log, "begin training epoch 2")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM
    said = (tmp_path / "err").read_text()
    assert "stopping rnnsearch, seed 1 (train); 0 of 3 runs are finished\n" in said and "Traceback" not in said
    *_, progress, end = said.splitlines()
    assert progress.startswith("table, 3 runs:   0%")
    assert end == "lwc-fairseq: stopped; the same command goes on from here"
    assert "the same command goes on there" in log.read_text()
    assert not (out / "table.md").exists() and not (out / "lwc").exists()


def start(*command, **more) -> subprocess.Popen:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    words = [str(word) for word in command]
    return subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, **more)


def wait_for(process: subprocess.Popen, log: Path, text: str) -> None:
    patience = time.monotonic() + 120
    while not (log.exists() and text in log.read_text()):
        assert process.poll() is None and time.monotonic() < patience
        time.sleep(0.02)


@LONG
def test_killed_in_training_it_goes_on_to_the_same_table(command, finished, tmp_path):
    process = start(*command, tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(process, tmp_path / "rnnsearch" / "seed1" / "train.log", "begin training epoch 2")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "table.md").exists()
    run(*command, tmp_path)
    assert rows(tmp_path) == rows(finished)
    logs = {path: path.read_bytes() for path in tmp_path.glob("*/*/*.log")}
    run(*command, tmp_path)
    assert rows(tmp_path) == rows(finished)
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*/*.log")} == logs  # nothing was done twice


@pytest.mark.parametrize("how", [[], ["--collect"], ["--dry-run"]])
def test_other_flags_than_those_of_finished_rows_are_refused(command, finished, how):
    """Before anything runs; the results stay."""
    before = {path: path.read_bytes() for path in finished.glob("**/*.*")}
    message = refused(*command, finished, "--train=--cpu --max-epoch 9", *how)
    assert "train.command has other flags than this command: remove " in message
    assert message.endswith("or give another --out; nothing was changed (2 runs in all)")
    assert {path: path.read_bytes() for path in finished.glob("**/*.*")} == before


def test_a_part_of_a_table_over_the_same_folder(command, finished):
    rest = run(*command, finished, "--rows", "both")
    assert "| both |" in rest.stdout and "failed" not in rest.stdout
    run(*command, finished)


def test_a_table_of_finished_runs_names_the_machines_and_versions_with_which_they_ran(command, finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    for file in out.glob("*/*/*.command"):
        recorded = file.read_text().replace(json.dumps(hardware()), '"8 × B"')
        file.write_text(recorded.replace(json.dumps(versions()), '"PyTorch 1"'))
    train = out / "lwc" / "seed1" / "train.command"
    train.write_text(train.read_text().replace('"8 × B"', '"8 × A"'))
    for how in ([], ["--collect"]):
        run(*command, out, *how)
        record = json.loads((out / "table.json").read_text())
        assert sorted(record["hardware"].split("; ")) == ["8 × A", "8 × B"]
        assert record["versions"].startswith("PyTorch 1, scored with sacrebleu ")


def test_paths_may_be_relative_in_one_command_and_absolute_in_another(command, finished):
    words = [os.path.relpath(word, ROOT) if Path(word).is_absolute() else word for word in map(str, command)]
    before = rows(finished)
    collected = run(*words, os.path.relpath(finished, ROOT), "--collect")
    assert "failed" not in collected.stdout and rows(finished) == before


@pytest.fixture(scope="module")
def place(tiny_data, tiny_checkpoint, tmp_path_factory):
    """A folder with a table of one row, whose model is given, and its results. All paths are relative."""
    folder = tmp_path_factory.mktemp("place") / "place"
    shutil.copytree(tiny_data, folder / "data")
    shutil.copy(tiny_checkpoint, folder / "model.pt")
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").touch()
    (folder / "table.yaml").write_text("title: Given\nrows: [{name: given, path: model.pt}]")
    run("lwc-fairseq", "table", "table.yaml", "--data", "data", "--out", "out", "--user-dir", "mine", cwd=folder)
    return folder


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ("data/train.de-en.de.bin", None),  # this row does not read it
        ("data/test.de-en.de.bin", "ran with {then}/data, which had other contents than {here}/data has now: remove"),
        ("data/dict.en.txt", "{here}/data has now: remove out/given/seed1/generated.txt, or give another --out"),
        ("model.pt", "{then}/model.pt, which had other contents than {here}/model.pt has now"),
        ("mine/__init__.py", "{then}/mine, which had other contents than {here}/mine has now"),
    ],
)
def test_results_are_of_the_same_data_and_models(place, tmp_path, changed, difference):
    """Here, everything was copied to another folder as a whole; relative words are the same."""
    here = shutil.copytree(place, tmp_path / "here")
    (here / "data" / "test1.de-en.de.bin").touch()
    change(here / changed)
    given = ("lwc-fairseq", "table", "table.yaml", "--data", "data", "--out", "out", "--user-dir", "mine", "--collect")
    if difference is None:
        run(*given, cwd=here)
        assert rows(here / "out") == rows(place / "out")
    else:
        assert difference.format(then=place, here=here) in refused(*given, cwd=here)


def test_a_mistyped_folder_is_named(place, tmp_path):
    here = shutil.copytree(place, tmp_path / "here")
    command = ("lwc-fairseq", "table", "table.yaml", "--user-dir", "mine", "--collect")
    message = refused(*command, "--data", "dataa", "--out", "out", cwd=here)
    assert f"ran with the data {place}/data, and there is none in {here}/dataa, which --data names" in message
    message = refused(*command, "--data", "data", "--out", "uot", cwd=here)
    assert "--collect: --out uot: no such folder" in message and not (here / "uot").exists()
    message = refused(*command, "--data", "data\udcff", "--out", "out", cwd=here)
    assert "--data 'data\\udcff': this name is not UTF-8" in message


def test_results_are_found_from_other_folders(place, tmp_path):
    """With other words for the same paths, or with data that were moved."""
    here = shutil.copytree(place, tmp_path / "here")
    (here / "sub").mkdir()
    words = ("table", "../table.yaml", "--out", "../out", "--collect", "--user-dir", here / "mine")
    (here / "data").rename(here / "sub" / "moved")
    run("lwc-fairseq", *words, "--data", "../sub/moved", cwd=here / "sub")
    other = shutil.copytree(here / "sub" / "moved", here / "sub" / "data")
    change(other / "test.de-en.de.bin")
    assert "which had other contents" in refused("lwc-fairseq", *words, "--data", "data", cwd=here / "sub")


def test_a_record_of_a_command_without_its_place_is_refused(place, tmp_path):
    here = shutil.copytree(place, tmp_path / "here")
    file = here / "out" / "given" / "seed1" / "generate.command"
    file.write_text(file.read_text().splitlines()[0])
    command = (
        "lwc-fairseq",
        "table",
        "table.yaml",
        "--out",
        "out",
        "--user-dir",
        "mine",
        "--collect",
        "--data",
        "data",
    )
    assert "generate.command does not say where it ran: remove out/given/seed1/generated.txt" in refused(
        *command, cwd=here
    )


def test_a_model_is_not_trained_on_with_other_data(command, finished, tiny_data, tmp_path):
    data = shutil.copytree(tiny_data, tmp_path / "data")
    given = [data if word == tiny_data else word for word in command]
    change(data / "train.de-en.en.bin")
    message = refused(*given, finished)
    assert f"train.command ran with {tiny_data}, which had other contents than {data} has now: remove" in message


def test_a_report_is_of_the_data_of_the_table(place, tmp_path):
    here = shutil.copytree(place, tmp_path / "here")
    change(here / "data" / "test.de-en.de.bin")
    said = refused("lwc-fairseq", "report", "out", "--data", "data", cwd=here)
    assert said.startswith("lwc-fairseq: error: data: other contents than when the table was made: give the same")
    run("lwc-fairseq", "report", "out", cwd=here)  # of the data that the table recorded, wherever that is called


def test_the_package_may_be_moved_between_two_runs(command, finished, tmp_path):
    out = shutil.copytree(finished, tmp_path / "out")
    for file in out.glob("*/*/*.command"):
        line = file.read_text().replace(str(finished), str(out))
        file.write_text(re.sub(r"(?<=--user-dir )\S+", "'/where it was/lwc_fairseq'", line))
    run(*command, out)
    assert rows(out) == rows(finished)


def test_a_reader_that_ends_early_is_no_error(command, tmp_path):
    line = shlex.join([str(word) for word in (*command, tmp_path / "out", "--dry-run", "--seeds", "100")])
    done = run("bash", "-c", f"{line} | head -c 10; exit ${{PIPESTATUS[0]}}", check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_data_that_is_missing_is_refused_before_the_first_run(table, tmp_path):
    message = refusal("table", table, "--data", tmp_path / "none", "--out", tmp_path / "out")
    assert message.endswith(f"--data {tmp_path}/none: no such folder; give the folder that fairseq-preprocess wrote")
    assert not (tmp_path / "out").exists()


def test_a_set_that_is_missing_is_refused_before_the_first_run(table, tiny_data, tmp_path):
    given = ("table", table, "--data", tiny_data, "--out", tmp_path / "out", "--generate=--gen-subset tset")
    assert f"{tiny_data} has no set tset: fairseq-preprocess --testpref makes" in refusal(*given)
    assert not (tmp_path / "out").exists()


def test_raw_text_is_scored_only_if_all_is_there_for_it(table, tiny_data, tmp_path):
    """Nothing runs before."""
    (tmp_path / "raw.yaml").write_text(f"{TABLE}score: {{detokenize: true}}")
    given = ("lwc-fairseq", "table", tmp_path / "raw.yaml", "--data", tiny_data, "--out", tmp_path / "out")
    assert "raw.yaml needs --references, raw text, because it scores detokenised" in refused(*given)
    message = refused(*given, "--references", tmp_path / "raw.yaml")
    assert f"{tiny_data}: no text.yaml says how its text was made" in message and not (tmp_path / "out").exists()


class TestNamedTests:
    @pytest.fixture(scope="class")
    def folder(self, tiny_data, tiny_checkpoint, tiny_text, tmp_path_factory):
        """A finished table of one model that is given, with two test sets, and two references for each."""
        folder = tmp_path_factory.mktemp("named")
        shutil.copytree(tiny_data, folder / "data")
        for path in (folder / "data").glob("valid.*"):
            shutil.copy(path, path.with_name(path.name.replace("valid.", "test1.", 1)))
        for name, subset in (("A", "test"), ("B", "valid")):
            for i in (0, 1):
                shutil.copy(tiny_text / f"{subset}.en", folder / f"{name}{i}")
        shutil.copy(tiny_checkpoint, folder / "model.pt")
        (folder / "table.yaml").write_text(
            "title: Named\ntests: {A: test, B: test1}\ngenerate: --cpu --max-len-b 9\n"
            "rows: [{name: given, path: model.pt}]"
        )
        run(*self.COMMAND, *self.REFERENCES, cwd=folder)
        return folder

    COMMAND = ("lwc-fairseq", "table", "table.yaml", "--data", "data", "--out", "out")
    REFERENCES = ("--references", "A=A0", "A=A1", "B=B0", "B=B1")

    def test_each_has_a_column(self, folder, tiny_text):
        page = (folder / "out" / "table.md").read_text()
        assert "|  | BLEU, A | BLEU, B | BLEU, ALL |" in page and "nrefs:2" in page
        run_folder = folder / "out" / "given" / "seed1"
        for subset, text in (("test", "test"), ("test1", "valid")):
            output = (run_folder / f"generated.{subset}.txt").read_text()
            found = {line.split("\t")[1] for line in output.splitlines() if line.startswith("T-")}
            assert found == set((tiny_text / f"{text}.en").read_text().splitlines())
        run("lwc-fairseq", "report", "out", cwd=folder)
        assert "Lines are counted through all tests: A, B." in (folder / "out" / "report.html").read_text()

    def test_only_what_is_missing_is_translated(self, folder, tmp_path):
        """Also a set that stands before another one."""
        here = shutil.copytree(folder, tmp_path / "here")
        run_folder = here / "out" / "given" / "seed1"
        (run_folder / "generated.test.txt").unlink()
        kept = (run_folder / "generated.test1.txt").stat().st_mtime_ns
        run(*self.COMMAND, *self.REFERENCES, cwd=here)
        assert rows(here / "out") == rows(folder / "out")
        assert (run_folder / "generated.test1.txt").stat().st_mtime_ns == kept

    def test_other_data_of_one_set_are_refused(self, folder, tmp_path):
        here = shutil.copytree(folder, tmp_path / "here")
        (here / "out" / "given" / "seed1" / "generated.test.txt").unlink()  # its data may change
        change(here / "data" / "test1.de-en.de.bin")
        message = refused(*self.COMMAND, *self.REFERENCES, cwd=here)
        assert (
            "generate.test1.command ran with" in message and "remove out/given/seed1/generated.test1.txt, or" in message
        )

    TAGGER = "import sys\nfor line in sys.stdin: print(*('NNS' if word < 'F' else 'DT' for word in line.split()))"

    def test_words_are_tagged_when_results_are_collected(self, folder, tmp_path):
        here = shutil.copytree(folder, tmp_path / "here")
        (here / "tag.py").write_text(self.TAGGER)
        with (here / "table.yaml").open("a") as file:
            file.write("\nparts_of_speech: [NN, DT&VB]")
        tagger = f"python {here / 'tag.py'}"
        page = run(*self.COMMAND, *self.REFERENCES, "--collect", "--tagger", tagger, cwd=here).stdout
        assert f"Tagger: `{tagger}`" in page and "| NN | given | " in page and "| DT&VB | given | " in page
        (row,) = rows(here / "out")
        assert {name: len(part["values"]) for name, part in row["parts"].items()} == {"NN": 4, "DT&VB": 4}
        assert row["value"] == rows(folder / "out")[0]["value"]

    @pytest.mark.parametrize(
        ("keys", "references", "tagger", "message"),
        [
            ("", REFERENCES, "cat", "--tagger: other.yaml has no parts_of_speech to score: leave --tagger out"),
            (
                "parts_of_speech: [NN]\nscore: {detokenize: true}",
                REFERENCES,
                "cat",
                "--tagger: other.yaml scores detokenised text, which has no words to tag",
            ),
            ("parts_of_speech: [NN]", REFERENCES, "head -n 3", "--tagger head -n 3: 3 lines of tags for "),
            (
                "parts_of_speech: [NN]",
                (),
                "sed 's/^/DT /'",
                ": 5 tags (DT two dogs run .) for 4 words (two dogs run .)",
            ),
            ("parts_of_speech: [NN]", (), "", "--tagger : 0 lines of tags for 1 lines"),
        ],
    )
    def test_a_tagger_is_tried_before_anything_runs(
        self, folder, tmp_path, monkeypatch, keys, references, tagger, message
    ):
        here = shutil.copytree(folder, tmp_path / "here")
        monkeypatch.chdir(here)
        write_preparation(here / "data", {"source": "de", "target": "en", "tokenize": "true"})
        (here / "other.yaml").write_text(f"{(here / 'table.yaml').read_text()}\n{keys}")
        given = ("table", "other.yaml", "--data", "data", "--out", "new", *references, "--tagger", tagger)
        assert message in refusal(*given) and not (here / "new").exists()

    @LONG
    def test_printed_commands_do_the_same(self, folder, tmp_path):
        here = shutil.copytree(folder, tmp_path / "here")
        shutil.rmtree(here / "out")
        for line in run(*self.COMMAND, "--dry-run", cwd=here).stdout.splitlines():
            run("bash", "-c", line, cwd=here)
        run(*self.COMMAND, *self.REFERENCES, "--collect", cwd=here)
        assert rows(here / "out") == rows(folder / "out")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (("--references", "A0"), "--references A0: give NAME=FILE, where NAME is one of A, B"),
            (("--references", "C=A0"), "--references C=A0: give NAME=FILE, where NAME is one of A, B"),
            (("--references", "A=A0"), "the same number of files, because ALL is one corpus: A 1, B 0"),
            (("--references", "A=A0", "B=table.yaml"), "--references: 4 lines for the 20 sentences of the set test1"),
            (
                ("--generate=--gen-subset valid",),
                "--gen-subset valid: the table names its tests (A, B): leave the flag out",
            ),
            (("--profile", "profile.yaml"), "tests: C: data has no set test7: fairseq-preprocess --testpref A,B makes"),
        ],
    )
    def test_what_does_not_fit_is_refused_before_anything_runs(self, folder, given, message):
        (folder / "profile.yaml").write_text("tests: {C: test7}")
        assert message in refused(*self.COMMAND[:-1], "new", *given, cwd=folder) and not (folder / "new").exists()


SIZES = "--layers 2 --embed-dim 16"
SMOOTH = "chunked_cross_entropy --label-smoothing 2"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            SIZES,
            "--layers 2 --windowz 3,5",
            "lwc: fairseq-train: unrecognized arguments: --windowz 3,5; there is --windows",
        ),
        (
            SIZES,
            "--layers 2 --windows 3,5,7",
            "lwc: --windows 3,5,7: 3 widths, but --layers 2: give each layer a width",
        ),
        (SIZES, f"{SIZES} --lr fast", "lwc: fairseq-train: argument --lr: fast: give values with commas between them"),
        (SIZES, f"{SIZES} --finetune-from-model no.pt", "lwc: --finetune-from-model no.pt: no such file"),
        ("cross_entropy", SMOOTH, "rnnsearch: --label-smoothing 2.0: must be in [0, 1) (2 rows in all)"),
        ("rows:", "trials: [--lr 1, --lr x]\nrows:", "rnnsearch: fairseq-train: argument --lr: x: give values"),
        (SIZES, f"{SIZES} --max-epoch 1", "lwc: --max-epoch 1: the table averages the checkpoints of 2 epochs"),
        ("--beam 2", "--beam 0", "rnnsearch: --beam 0: must be at least 1 (3 rows in all)"),
    ],
)
def test_flags_that_a_run_would_refuse_are_refused_before(table, tmp_path, old, new, message):
    """They need no data."""
    wrong = tmp_path / "table.yaml"
    wrong.write_text(table.read_text().replace(old, new))
    for how in ((), ("--dry-run",), ("--launcher", "local")):
        given = ("table", wrong, "--data", tmp_path / "none", "--out", tmp_path / "out", *how)
        assert f"row {message}" in refusal(*given) and not (tmp_path / "out").exists()


def test_flags_may_name_checkpoints_that_a_table_makes_later(table, tmp_path, capsys):
    later = tmp_path / "table.yaml"
    later.write_text(table.read_text().replace(SIZES, f"{SIZES} --finetune-from-model {{rnnsearch}}"))
    words = ("table", str(later), "--data", "data", "--out", str(tmp_path / "out"), "--dry-run")
    args = cli.parser().parse_args(words)
    assert args.call(args) == 0
    assert f"--finetune-from-model {tmp_path}/out/rnnsearch/seed1/averaged.pt" in capsys.readouterr().out


def test_a_wrong_table_is_refused_in_one_line(table, tmp_path, tiny_data):
    (tmp_path / "wrong.yaml").write_text(TABLE.replace("published: 34.06", "publshed: 34.06"))
    message = refusal("table", tmp_path / "wrong.yaml", "--data", tiny_data, "--out", tmp_path)
    assert "row rnnsearch: publshed: no such key; the keys are" in message
