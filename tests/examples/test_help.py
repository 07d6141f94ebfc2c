"""Each script of examples/ explains itself with --help, and refuses arguments that it does not have."""

import ast
import re

import pytest

from conftest import LONG, ROOT, run, run_python

EXAMPLES = ROOT / "examples"
SHELL = sorted(path for path in EXAMPLES.rglob("*.sh") if path.name != "recipe.sh")  # the others source it
PYTHON = sorted(path for path in EXAMPLES.rglob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


def name(path):
    return str(path.relative_to(EXAMPLES))


def head(path) -> str:
    """The comment below the first line."""
    comment = re.match(r"#!.*\n((?:#.*\n)+)", path.read_text(encoding="utf-8"))[1]
    return re.sub(r"^# ?", "", comment, flags=re.MULTILINE)


@pytest.mark.parametrize("script", SHELL, ids=name)
def test_shell(script):
    assert run("bash", script, "--help", cwd=ROOT).stdout == head(script)
    usage = re.search(rf"^  bash examples/{name(script)}\b(.*)", head(script), re.MULTILINE)[1]
    refused = run("bash", script, "--no-such-option", check=False)
    assert refused.returncode == 2 and "unknown argument --no-such-option" in refused.stderr
    for option in re.findall(r"--[a-z]+", usage):
        assert "unknown argument" not in run("bash", script, option, "--help", "--help", check=False).stderr


@pytest.mark.parametrize(
    "script",
    [pytest.param(path, marks=LONG if path.parent.name == "benchmark" else ()) for path in PYTHON],
    ids=name,
)
def test_python(script):
    described = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")), clean=False)
    assert described.strip() in run_python(script, "--help").stdout
