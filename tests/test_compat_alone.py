"""lwc_fairseq_compat as a distribution of its own: without the plugin, and beside it."""

import inspect
import re
import shutil
import tomllib
import zipfile

import pytest

import lwc_fairseq
import lwc_fairseq_compat
from conftest import LONG, ROOT, TINY_TRAINING, hypotheses, run
from environments import environment_without, packages_of
from lwc_fairseq_compat import hooks

PIP = ("python", "-m", "pip")
SIZES = ("embed-dim=16", "ffn-embed-dim=32", "attention-heads=2", "layers=2")
SMALL_TRANSFORMER = (
    "--arch",
    "transformer",
    *(f"--{side}-{size}" for side in ("encoder", "decoder") for size in SIZES),
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of the compatibility package alone and of the plugin, by the names of their distributions."""
    folder = tmp_path_factory.mktemp("wheels")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "runs", "*.egg-info", "build", "__pycache__"))
    for project in (source / "lwc_fairseq_compat", source):
        run(*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, project)
    return {wheel.name.split("-")[0]: wheel for wheel in folder.glob("*.whl")}


@pytest.fixture
def without_both(tmp_path):
    """How to run commands in an environment that has neither of the two distributions."""
    return {"cwd": tmp_path, **environment_without(tmp_path, "lwc_fairseq")}


@pytest.fixture
def compat_alone(without_both, wheels):
    """How to run commands in an environment that has the compatibility package alone."""
    run(*PIP, "install", "-q", "--no-deps", wheels["lwc_fairseq_compat"], **without_both)
    return without_both


def test_the_wheel_holds_the_package_and_its_license(wheels):
    with zipfile.ZipFile(wheels["lwc_fairseq_compat"]) as wheel:
        names = wheel.namelist()
        (license_,) = (name for name in names if name.endswith("/LICENSE"))
        assert wheel.read(license_) == (ROOT / "LICENSE").read_bytes()
    folder = "lwc_fairseq_compat_alone/lwc_fairseq_compat/"
    inside = {name.removeprefix(folder) for name in names if name.startswith(folder)}
    assert inside == {path.name for path in (ROOT / "lwc_fairseq_compat").glob("*.py")} | {"py.typed"}


def test_no_file_belongs_to_both_distributions(wheels):
    """pip removes every file of a distribution, even if it also belongs to another one."""
    alone, plugin = (set(zipfile.ZipFile(wheel).namelist()) for _, wheel in sorted(wheels.items(), reverse=True))
    assert "lwc_fairseq_compat/hooks.py" in plugin and not alone & plugin


def test_both_distributions_have_one_version(wheels):
    assert lwc_fairseq.__version__ == lwc_fairseq_compat.__version__
    assert {wheel.name.split("-")[1] for wheel in wheels.values()} == {lwc_fairseq_compat.__version__}


def test_the_plugin_requires_what_the_compatibility_package_requires():
    plugin, compat = (
        tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for folder in (ROOT, ROOT / "lwc_fairseq_compat")
    )
    assert set(compat["dependencies"]) < set(plugin["dependencies"])
    assert compat["requires-python"] == plugin["requires-python"]


def test_the_readme_names_every_patch_and_no_other():
    patches = [patch for entries in hooks._patches_after_module.values() for _, _, patch in entries]
    names = {inspect.unwrap(patch).__name__ for patch in patches + hooks._patches_before_fairseq}
    rows = re.findall(
        r"^\| .* \| (`.*`) \| .*\|$", (ROOT / "lwc_fairseq_compat" / "README.md").read_text(), re.MULTILINE
    )
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names


def location(environment) -> str:
    """The file of lwc_fairseq_compat that PyTorch has loaded, or the error with which fairseq's import fails."""
    program = "import fairseq, lwc_fairseq_compat; print(lwc_fairseq_compat.__file__)"
    done = run("python", "-c", program, check=False, **environment)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


def test_without_the_plugin_the_stock_transformer_trains_and_translates(tiny_data, compat_alone, tmp_path):
    (tmp_path / "lwc_fairseq_compat").mkdir()  # a folder of this name in the current folder is not the package
    assert location(compat_alone).startswith(f"{packages_of(tmp_path)}/lwc_fairseq_compat_alone/")

    train = (*SMALL_TRANSFORMER, *TINY_TRAINING, "--max-update", "2", "--save-dir", "out")
    run("fairseq-train", tiny_data, *train, **compat_alone)
    translate = ("--path", "out/checkpoint_last.pt", "--beam", "2", "--cpu")
    assert len(hypotheses(run("fairseq-generate", tiny_data, *translate, **compat_alone).stdout)) == 20


@LONG
def test_fairseqs_own_examples_run_as_the_readme_shows(tiny_text, compat_alone, tmp_path):
    """With few sentences."""
    text = shutil.copytree(tiny_text, tmp_path / "text")
    for language, sentence in (("de", "ein mann fährt fahrrad ."), ("en", "a man rides a bike .")):
        with open(text / f"train.{language}", "a", encoding="utf-8") as file:
            file.write(f"{sentence}\n" * 20)
    _, _, examples = (ROOT / "lwc_fairseq_compat" / "README.md").read_text().partition("## What was run")
    script = "\n".join(["set -eo pipefail", *re.findall(r"```bash\n(.*?)```", examples, re.DOTALL)])
    said = run("bash", "-c", script, SUBWORDS=str(text), TEXT=str(text), **compat_alone)
    assert re.search(r"BLEU4 = \d", said.stdout)
    assert re.search(r"\nC-0\ta man\nH-0\t\S+\t.*\ba man\b", said.stdout)
    assert re.search(r"Perplexity: \d", said.stdout + said.stderr)
    assert {path.parent.name for path in compat_alone["cwd"].glob("checkpoints/*/checkpoint_best.pt")} == {
        *("translation", "english", "roberta")
    }


@LONG
def test_pip_installs_and_removes_both_in_any_order(wheels, without_both):
    packages = packages_of(without_both["cwd"])
    alone, plugin = f"{packages}/lwc_fairseq_compat_alone/lwc_fairseq_compat/", f"{packages}/lwc_fairseq_compat/"
    neither = "ValueError: mutable default <class 'fairseq.dataclass.configs.CommonConfig'>"
    install, replace, remove = (
        ("install", "--no-deps"),
        ("install", "--no-deps", "--force-reinstall"),
        ("uninstall", "-y"),
    )
    assert location(without_both).startswith(neither)
    for command, name, expected in (
        (install, "lwc_fairseq_compat", alone),
        (install, "lwc_fairseq", plugin),
        (replace, "lwc_fairseq_compat", plugin),
        (remove, "lwc_fairseq_compat", plugin),
        (install, "lwc_fairseq_compat", plugin),
        (replace, "lwc_fairseq", plugin),
        (remove, "lwc_fairseq", alone),
        (remove, "lwc_fairseq_compat", neither),
    ):
        run(*PIP, *command, name if command is remove else wheels[name], **without_both)
        assert location(without_both).startswith(expected), (command, name)
    assert not list(packages.glob("lwc_*"))


@LONG
def test_an_editable_installation(wheels, without_both):
    source = wheels["lwc_fairseq"].parent / "source" / "lwc_fairseq_compat"
    run(*PIP, "install", "-q", "--no-deps", "--no-build-isolation", "-e", source, **without_both)
    assert location(without_both) == str(source / "__init__.py")
