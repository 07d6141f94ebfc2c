"""The package as users install it: in another folder, imported twice, beside another plugin."""

import shutil
from textwrap import dedent

import pytest

import lwc_fairseq
from conftest import (
    FRONT_DOOR,
    LONG,
    ROOT,
    TINY_LWC,
    TINY_TRAINING,
    checked,
    hypotheses,
    refusal,
    run,
    run_python,
)
from front_door import FrontDoor

TRAIN = ("--task", "concat_translation", "--max-update", "2", *TINY_LWC[2:], *TINY_TRAINING)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder without a checkout, in which pip has installed the wheel that is built from the source distribution."""
    folder = tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns(".*", "runs", "*.egg-info", "build", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    run("python", "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source")
    shutil.rmtree(folder / "source")
    (wheel,) = (folder / "dist").glob("*.whl")
    run("python", "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "site", wheel)
    return folder / "site"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def run_installed(installed, elsewhere):
    """Run a command in a folder outside of the checkout, with the package that is installed."""
    door = FrontDoor({**FRONT_DOOR.environment, "PYTHONPATH": str(installed)})
    yield lambda *command: checked(door.run(list(map(str, command)), elsewhere))
    door.close()


def files(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".py", ".html", ".js"))


@pytest.mark.parametrize("package", ["lwc_fairseq", "lwc_fairseq_compat"])
def test_everything_is_installed(installed, package):
    """Except what only the distribution of the compatibility package has, and what pip has built from it."""
    assert files(installed / package) == [
        name for name in files(ROOT / package) if not name.startswith(("alone/", "build/"))
    ]


def test_commands_in_another_folder_find_the_installed_package(installed, run_installed, tiny_data):
    where = run_installed("python", "-c", "import lwc_fairseq; print(lwc_fairseq.__file__)").stdout
    assert where.startswith(str(installed))
    run_installed("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *TRAIN, "--save-dir", "out")
    path = ("--path", "out/checkpoint_last.pt", "--cpu")
    plugin = ("--user-dir", "lwc_fairseq", "--task", "concat_translation")
    assert hypotheses(run_installed("fairseq-generate", tiny_data, *plugin, *path).stdout)
    assert str(installed) in run_installed("lwc-fairseq", "doctor").stdout
    assert run_installed("lwc-fairseq", "--version").stdout == f"lwc_fairseq {lwc_fairseq.__version__}\n"


def test_the_papers_tables_are_installed(run_installed, tiny_data):
    table = ("lwc-fairseq", "table", "lwc_table3", "--profile", "demo", "--data", tiny_data, "--rows", "ours")
    assert "fairseq-train" in run_installed(*table, "--out", "table", "--dry-run").stdout


@LONG
def test_a_papers_table_and_its_report_are_made(run_installed, elsewhere, tiny_data):
    train = "--max-update 2 --layers 2 --embed-dim 16 --ffn-embed-dim 16 --attention-heads 2 --cpu"
    table = ("lwc-fairseq", "table", "lwc_table3", "--profile", "demo", "--data", tiny_data, "--rows", "ours")
    run_installed(*table, "--train", train, "--generate=--cpu", "--out", "made")
    run_installed("lwc-fairseq", "report", "made")
    assert "35.07" in (elsewhere / "made" / "report.html").read_text()


def test_an_unknown_table_is_named(tiny_data):
    said = refusal("table", "lwc_table9", "--data", tiny_data, "--out", "t")
    assert said.startswith("lwc_table9: no such file, and no table of the papers; these are abd_")
    assert "lwc_table3" in said


def test_configurations_are_installed(installed, run_installed, elsewhere, tiny_data):
    settings = ("++common.cpu=true", "++optimization.max_update=2", "++model.embed_dim=16", "++model.hidden_dim=16")
    configs = ("--config-dir", installed / "lwc_fairseq" / "configs", "--config-name", "rnnsearch")
    folders = (f"task.data={tiny_data}", "checkpoint.save_dir=out", "hydra.run.dir=hydra")
    run_installed("fairseq-hydra-train", *configs, *settings, *folders)
    assert (elsewhere / "hydra" / "out" / "checkpoint_last.pt").exists()


def test_an_imported_plugin_is_known_by_any_path(tmp_path):
    (tmp_path / "link").symlink_to(ROOT)
    script = dedent(f"""
        from argparse import Namespace
        import lwc_fairseq
        from fairseq.utils import import_user_module
        for path in ("lwc_fairseq", "link/lwc_fairseq", "{ROOT}/tests/../lwc_fairseq/", "lwc_fairseq"):
            import_user_module(Namespace(user_dir=path))
    """)
    run_python("-c", script, cwd=tmp_path)


@pytest.fixture
def second_plugin(tmp_path):
    """A user's own plugin, with a preset of a model of ours and a model of its own."""
    models = tmp_path / "second" / "models"
    models.mkdir(parents=True)
    (tmp_path / "second" / "__init__.py").write_text("import lwc_fairseq\n")
    (models / "__init__.py").write_text("")
    (models / "mine.py").write_text(
        dedent("""
            from fairseq.models import register_model_architecture

            @register_model_architecture("lwc_transformer", "lwc_of_mine")
            def lwc_of_mine(args):
                args.layers = getattr(args, "layers", 1)
        """)
    )
    return tmp_path / "second"


def test_a_second_plugin_builds_on_this_one(second_plugin, tiny_data, tmp_path):
    mine = ("--user-dir", second_plugin, *TRAIN, "--arch", "lwc_of_mine", "--save-dir", "out")
    run("fairseq-train", tiny_data, *mine, cwd=tmp_path)
    assert (tmp_path / "out" / "checkpoint_last.pt").exists()


@pytest.mark.parametrize("order", ["second lwc_fairseq", "lwc_fairseq second"])
def test_two_plugins_in_one_process(second_plugin, order):
    script = dedent(f"""
        from argparse import Namespace
        from fairseq.models import ARCH_MODEL_REGISTRY
        from fairseq.utils import import_user_module
        for name in "{order}".split():
            import_user_module(Namespace(user_dir=name))
        assert ARCH_MODEL_REGISTRY["lwc_of_mine"] is ARCH_MODEL_REGISTRY["lwc_transformer"]
    """)
    run_python("-c", script, cwd=second_plugin.parent)
