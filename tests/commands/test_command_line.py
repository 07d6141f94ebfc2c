"""The command line of `lwc-fairseq`: what it says before it does anything, at once, and how a shell completes it."""

import os
import re
import sys
from pathlib import Path

import pytest

from conftest import refused, run
from lwc_fairseq import cli
from lwc_fairseq.cli.arguments import utf8
from lwc_fairseq_compat import UserError

COMMANDS = (
    *("table", "translate", "average", "import", "align", "aer", "compare", "attention"),
    *("watch", "serve", "export", "pack", "report", "reverse", "doctor"),
)
HELPS = [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)]
MISTAKES = [
    (["translat"], "argument COMMAND: invalid choice: 'translat'"),
    (["table", "lwc_table3"], "the following arguments are required: --data, --out"),
    (["attention", "m.pt", "--data", "d", "--layer", "top"], "--layer: top: give a number, counted from 0, or all"),
    (["compare", "a=b", "--ref", "r", "--groups", "5,3"], "--groups: 5,3: give lengths in increasing order"),
    (["translate", "m.pt", "--beam", "0"], "--beam: 0: must be at least 1"),
]


LAUNCH = """
import atexit, runpy, sys
begin = set(sys.modules)
atexit.register(lambda: print("imported", *sorted(sys.modules.keys() - begin), file=sys.stderr))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start(*arguments):
    """Run the console script in a new process. Also return the packages that it imports, besides Python's own."""
    done = run(sys.executable, "-c", LAUNCH, Path(sys.executable).with_name("lwc-fairseq"), *arguments, check=False)
    *_, last = done.stderr.splitlines()
    names = {name.partition(".")[0] for name in last.split()[1:]}
    assert last.startswith("imported ") and "lwc_fairseq" in names
    return done, names - sys.stdlib_module_names - {"lwc_fairseq", "lwc_fairseq_compat"}


@pytest.mark.parametrize("arguments", HELPS, ids=" ".join)
def test_help_imports_nothing_but_python(arguments):
    done, names = start(*arguments)
    assert done.returncode == 0 and done.stdout.startswith(("usage: lwc-fairseq", "lwc_fairseq 0."))
    assert not names


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_each_argument(command):
    (commands,) = (action for action in cli.parser()._actions if action.dest == "command")
    for argument in commands.choices[command]._actions:
        assert argument.help, argument.dest
        assert argument.option_strings or argument.metavar, f"{argument.dest} is in small letters"


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_told_before_anything_is_imported(arguments, message):
    done, names = start(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert not names


def test_names_in_another_encoding_can_be_printed():
    assert utf8(os.fsdecode("é".encode())) == "é" and utf8(os.fsdecode(b"caf\xe9")) == "caf?"


def test_the_doctor_begins_at_once():
    """Its first lines need nothing that takes long to import."""
    script = """
        import sys
        from lwc_fairseq.cli import doctor
        findings = doctor.examine()
        print(next(findings).name, next(findings).name, next(findings).name)
        print(*sorted({"torch", "fairseq", "numpy"} & sys.modules.keys()))
    """
    lines = run(sys.executable, "-c", re.sub("^ +", "", script, flags=re.MULTILINE)).stdout.splitlines()
    assert lines == ["Python lwc_fairseq torch", ""]


def complete(*words, folder):
    """What bash offers for the last word of a command."""
    script = f"""
        eval "$(lwc-fairseq --print-completion bash)"
        COMP_WORDS=(lwc-fairseq {" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words)}
        $(complete -p lwc-fairseq | grep -o '_shtab[a-z_]*')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run("bash", "-c", script, cwd=folder)
    assert not done.stderr
    return done.stdout.split()


def test_completion_in_bash(tmp_path):
    (tmp_path / "test.en").touch()
    assert complete("a", folder=tmp_path) == ["average", "align", "aer", "attention"]
    assert complete("re", folder=tmp_path) == ["report", "reverse"]
    assert complete("translate", "--be", folder=tmp_path) == ["--beam"]
    assert complete("align", "--gold-first", "", folder=tmp_path) == ["0", "1"]
    assert complete("compare", "--ref", "te", folder=tmp_path) == ["test.en"]


def test_completion_in_zsh():
    assert run("lwc-fairseq", "--print-completion", "zsh").stdout.startswith("#compdef lwc-fairseq\n")


def test_completion_without_shtab(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(UserError, match="--print-completion needs shtab: pip install shtab"):
        cli.parser().parse_args(["--print-completion", "bash"])


def test_what_a_plugin_lacks_is_named(tmp_path):
    """It is no requirement of this package, so there is no advice to install those."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("import no_such_package\n")
    message = refused("lwc-fairseq", "align", "m.pt", "--data", "d", "--user-dir", tmp_path / "mine")
    lacks = "No module named 'no_such_package'; install what this package needs"
    assert message == f"lwc-fairseq: error: --user-dir {tmp_path / 'mine'}: {lacks}"
