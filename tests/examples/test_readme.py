"""Every command of README.md and of docs/ runs, in order, as printed, in a copy of the repository without anything
built."""

import contextlib
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch
from sacrebleu import corpus_bleu

from conftest import LONG, ROOT, hypotheses, run, run_python
from pages import PAGES, commands, scripts

README = PAGES[0]

QUICKSTART = "bash examples/quickstart.sh"
OTHER_MODEL = "bash examples/quickstart.sh --arch deepatt"
BIDIRECTIONAL = "bash examples/quickstart.sh --arch abd"
TWO_MACHINES = next(one for one in commands(ROOT / "docs" / "several_gpus.md") if "--nnodes 2" in one)
ON_A_CLUSTER = next(one for one in commands(ROOT / "docs" / "tables.md") if "--launcher" in one)
ELSEWHERE = {
    OTHER_MODEL: "has a test of its own",
    "bash tests/run.sh": "is what runs this test",
    "source .venv/bin/activate": "has no effect on the next command here; run() puts .venv on the path",
    TWO_MACHINES: "needs two machines",
    ON_A_CLUSTER: "needs SLURM",
    "lwc-fairseq import OLD.pt NEW.pt --data DATA": "needs one of jarfo/joint, as test_import_command.py makes",
}


@pytest.fixture(scope="session")
def clone(tmp_path_factory):
    """A copy of the repository, whose environment is that of the tests."""
    copy = tmp_path_factory.mktemp("clone") / "lwc"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", "runs", ".git", "__pycache__", ".*_cache"))
    (copy / ".venv").mkdir()
    for part in (ROOT / ".venv").iterdir():
        (copy / ".venv" / part.name).symlink_to(part)
    (copy / ".venv" / "ready").unlink()
    fingerprint = "{ pwd; cat setup.py pyproject.toml constraints.txt examples/setup_env.sh; } | cksum > .venv/ready"
    run("bash", "-c", fingerprint, cwd=copy)
    return copy


@contextlib.contextmanager
def shortened(clone, training: str, updates: int):
    """The models of the quickstart whose training has these words train for this number of updates."""
    models = clone / "examples" / "quickstart" / "models.yaml"
    whole = models.read_text()
    assert training in whole
    models.write_text(whole.replace(training, f"{training} --max-update {updates}"))
    yield
    models.write_text(whole)


@pytest.fixture(scope="session")
def learns(pytestconfig) -> bool:
    """Whether the quickstart trains as long as a user's: where the long tests run."""
    return pytestconfig.option.markexpr != "not long"


@pytest.fixture(scope="session")
def quickstart(clone, learns):
    """What the quickstart prints, the first time."""
    # After fewer updates, it would translate without end.
    with contextlib.nullcontext() if learns else shortened(clone, "--warmup-updates 200 --max-update 750", 60):
        yield run(*shlex.split(QUICKSTART), cwd=clone).stdout


def bleu(output: str) -> float:
    return float(re.search(r"BLEU = ([\d.]+)", output)[1])


def test_quickstart_translates_the_demo_corpus(quickstart, clone, learns):
    score = re.search(r"BLEU = ([\d.]+) +\((\S+)\)", quickstart)
    assert float(score[1]) >= (90 if learns else 0)
    assert "environment: .venv is ready" in quickstart  # otherwise the clone would have taken the tests' environment
    assert "tok:13a" in score[2] and "version:" in score[2]
    assert quickstart.count("  German  ") == quickstart.count("  translation  ") == 5
    for step in range(1, 8):
        assert f"[{step}/7]" in quickstart
    for path in (
        "runs/quickstart/text",
        "runs/quickstart/lwc_transformer_small/seed1/checkpoint_best.pt",
        "runs/quickstart/report.html",
    ):
        assert path in quickstart and (clone / path).exists()
    assert "LWC" in (clone / "runs/quickstart/report.html").read_text()


@pytest.fixture
def short_training(clone):
    """DeepAtt in the quickstart stops after a few updates; what it leaves is not kept."""
    with shortened(clone, "--clip-norm 5", 20):
        yield
    shutil.rmtree(clone / "runs" / "quickstart" / "deepatt", ignore_errors=True)


@LONG
def test_quickstart_with_another_model(quickstart, clone, short_training):
    """DeepAtt with K = 5, on the same corpus."""
    done = run(*shlex.split(OTHER_MODEL), cwd=clone).stdout
    assert done.count("done before") == 3  # corpus, BPE, binary data
    bleu(done)  # there is a score
    saved = torch.load(clone / "runs/quickstart/deepatt/seed1/checkpoint_best.pt")["cfg"]["model"]
    assert (saved["_name"], saved["attention_layers"]) == ("deepatt", 5)


@LONG
@pytest.mark.parametrize("command", [OTHER_MODEL, BIDIRECTIONAL])
def test_other_models_learn_in_the_quickstart(clone, learns, command):
    assert learns
    assert bleu(run(*shlex.split(command), "--fresh", "--out", clone / "runs" / "long", cwd=clone).stdout) >= 85


def test_quickstart_does_nothing_twice(quickstart, clone):
    again = run(*shlex.split(QUICKSTART), cwd=clone).stdout
    assert again.count("done before") == 7
    assert bleu(again) == bleu(quickstart)


@LONG
def test_a_model_fed_shuffled_sources_does_not_come_near(quickstart, clone):
    """The translation depends on the source: with its words shuffled, or with another sentence, it differs."""
    out = clone / "runs" / "quickstart"
    draw = random.Random(1)
    sources, references = ((out / "text" / f"test.{side}").read_text("utf-8").splitlines() for side in ("de", "en"))
    mixed_words = [" ".join(draw.sample(source.split(), len(source.split()))) for source in sources]
    mixed_sentences = sources[1:] + sources[:1]
    for mixed, limit in ((mixed_words, 80), (mixed_sentences, 30)):
        output = run(
            *("fairseq-interactive", out / "data", "--user-dir", "lwc_fairseq", "--task", "concat_translation"),
            *("--path", out / "lwc_transformer_small" / "seed1" / "checkpoint_best.pt", "--bpe", "subword_nmt"),
            *("--bpe-codes", out / "bpe" / "codes", "--beam", "1", "--buffer-size", "500", "--batch-size", "100"),
            *("--post-process", "subword_nmt"),
            stdin="\n".join(mixed),
            cwd=clone,
        ).stdout
        assert corpus_bleu([text for text, _ in hypotheses(output)], [references]).score < limit


def test_quickstart_names_the_step_that_fails(quickstart, clone):
    scored = clone / "runs" / "quickstart" / "lwc_transformer_small" / "seed1"
    (scored / "score.json").rename(scored / "score.kept")
    (scored / "test.en").rename(scored / "test.kept")
    (scored / "test.en").write_text("one line\n")
    failed = run(*shlex.split(QUICKSTART), cwd=clone, check=False)
    (scored / "test.kept").replace(scored / "test.en")
    (scored / "score.kept").replace(scored / "score.json")
    assert failed.returncode
    assert "quickstart: stopped while scoring; the log is runs/quickstart" in failed.stderr


def test_quickstart_refuses_unknown_arguments(clone):
    failed = run("bash", "examples/quickstart.sh", "--fesh", cwd=clone, check=False)
    assert failed.returncode == 2 and "unknown argument --fesh" in failed.stderr
    failed = run("bash", "examples/quickstart.sh", "--arch", "deepat", cwd=clone, check=False)
    assert failed.returncode == 2 and "--arch 'deepat': choose one of abd abd_lwc_small" in failed.stderr


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
def test_quickstart_leaves_the_files_of_others_alone(clone, tmp_path, fresh):
    (tmp_path / "thesis").write_text("important")
    failed = run("bash", "examples/quickstart.sh", "--out", tmp_path, *fresh, cwd=clone, check=False)
    assert failed.returncode and "the folder has files that this script did not make; name another" in failed.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def others(page: Path) -> list[str]:
    """The commands that no other test runs, in their order; `pip install` only says what it would do."""
    left = [command for command in commands(page) if command != QUICKSTART and command not in ELSEWHERE]
    return [
        command.replace("pip install", "python -m pip install --dry-run --no-deps --no-build-isolation")
        for command in left
    ]


def test_the_other_commands_of_the_readme_run(quickstart, clone, learns):
    short, of_python = others(README), run_python("-c", scripts(README)[0], cwd=clone).stdout
    assert len(short) == 9
    assert not learns or of_python.startswith("['My grandfather")
    limits = {"fairseq-train": "--max-update 1", "fairseq-generate": "--max-len-b 20"}
    for command in short:
        limited = f"{command} {limits.get(command.split()[0], '')}"
        if command.startswith(("fairseq-", "lwc-fairseq ")):
            words, _, text = limited.partition("<<<")
            done = run(*shlex.split(words), cwd=clone, stdin="".join(f"{line}\n" for line in shlex.split(text)) or None)
        else:
            done = run("bash", "-c", limited, cwd=clone)
        if command.startswith("fairseq-generate"):
            assert len(hypotheses(done.stdout)) == 500
        if ".zip" in command:
            assert f"`{done.stdout.strip()}`" in README.read_text()
        elif command.startswith("lwc-fairseq translate"):
            assert f"{[done.stdout.removesuffix(chr(10))]}\n" == of_python


BRIEFLY = "--optimizer adam --lr 1e-3 --max-tokens 2048 --max-update 2 --embed-dim 16"
"""Of training. Recurrent models also get a narrow state."""


@pytest.fixture(scope="session")
def as_the_pages_say(quickstart, clone):
    """The files that the pages of docs/ take as given: DATA, LINKS, GOLD, a card, and models under short names."""
    (clone / "DATA").symlink_to("runs/quickstart/data")
    trained = clone / "runs" / "quickstart" / "lwc_transformer_small" / "seed1" / "checkpoint_best.pt"
    for name in ("lwc.pt", "l2r.pt", "checkpoint_best.pt"):
        (clone / name).symlink_to(trained)
    for name, flags in (
        ("r2l", "--arch rnnsearch --reverse-target"),
        ("deepatt", "--arch deepatt"),
        ("abd", "--arch abd --criterion bidirectional_cross_entropy"),
    ):
        train = "fairseq-train DATA --user-dir lwc_fairseq --task concat_translation"
        run(*shlex.split(f"{train} {BRIEFLY} --hidden-dim 16 --save-dir runs/{name} {flags}"), cwd=clone)
        (clone / f"{name}.pt").symlink_to(f"runs/{name}/checkpoint_best.pt")
    of_the_quickstart = clone / "runs" / "quickstart" / "deepatt" / "seed1"
    of_the_quickstart.mkdir(parents=True)
    shutil.copy(clone / "deepatt.pt", of_the_quickstart / "checkpoint_best.pt")
    (clone / "RUN").mkdir()
    for epoch in range(1, 6):
        shutil.copy(trained, clone / "RUN" / f"checkpoint{epoch}.pt")
    (clone / "raw.de").write_text("Mein Großvater ist alt.\n")
    (clone / "TEXT").mkdir()
    for file in (clone / "runs" / "quickstart" / "text").glob("*.[de][en]"):
        lines = file.read_text("utf-8").splitlines(keepends=True)[:200]
        (clone / "TEXT" / file.name).write_text("".join(lines), "utf-8")
    (clone / "card.md").write_text("# A model of the quickstart\n")
    (clone / "LINKS").write_text("0-0 1-2\n")
    (clone / "GOLD").write_text("0-0 1-1\n")
    yield
    shutil.rmtree(of_the_quickstart.parent)


def brief_flags(command: str) -> str:
    """What makes a command of a page short."""
    if command.startswith("fairseq-train DATA"):
        is_recurrent = re.search(r"--arch (rnnsearch|abd|nsc_hs) ", command)
        return BRIEFLY + " --hidden-dim 16" * bool(is_recurrent)
    if command.startswith(("fairseq-train", "torchrun")):
        return "--max-update 2"
    if command.startswith("fairseq-generate"):  # a model of a few updates translates without end
        return "--max-len-b 20"
    if command.startswith("lwc-fairseq table"):
        return "'--train=--max-update 2' '--generate=--max-len-b 20'"
    return ""


@LONG
@pytest.mark.parametrize(
    "page",
    # some have tests of their own
    [page for page in PAGES[1:] if page.stem not in ("evidence", "extending", "published")],
    ids=lambda page: page.stem,
)
def test_the_commands_of_a_page_run(as_the_pages_say, clone, page):
    for script in scripts(page) if page.stem != "deploying" else ():  # that of a server has a test of its own
        run_python("-c", script, cwd=clone)
    for command in others(page):
        if re.search(r"\b(OUTPUT|MODEL)\b", command):
            continue  # translations and a model of the reader's
        flags = brief_flags(command)
        line = "Mein Großvater ist alt .\n" if command.startswith("fairseq-interactive") else None
        redirected = ("bash", "-c", command) if "<" in command or "|" in command else shlex.split(f"{command} {flags}")
        run(*redirected, stdin=line, cwd=clone)
