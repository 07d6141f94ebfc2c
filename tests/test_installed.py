"""The package as users have it: installed, in a folder of their own, imported again, beside another plugin."""

import shutil
from textwrap import dedent

import pytest

from conftest import LONG, ROOT, TINY_LWC, TINY_TRAINING, run

TRAIN = ("--task", "concat_translation", "--max-update", "2", *TINY_LWC[2:], *TINY_TRAINING)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder in which pip has installed the package: no checkout."""
    folder = tmp_path_factory.mktemp("installed")
    ignored = shutil.ignore_patterns(".*", "runs", "tests", "*.egg-info", "build")
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    run("python", "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "site", folder / "source")
    shutil.rmtree(folder / "source")
    return folder / "site"


def files(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.py"))


@pytest.mark.parametrize("package", ["lwc_fairseq", "lwc_fairseq_compat"])
def test_everything_is_installed(installed, package):
    assert files(installed / package) == files(ROOT / package)


def test_commands_in_another_folder_find_the_installed_package(installed, tiny_data, tmp_path):
    here = {"cwd": tmp_path, "PYTHONPATH": str(installed)}
    where = run("python", "-c", "import lwc_fairseq; print(lwc_fairseq.__file__)", **here).stdout
    assert where.startswith(str(installed))
    run("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *TRAIN, "--save-dir", "out", **here)
    said = run("lwc-fairseq", "doctor", **here).stdout
    assert str(installed) in said


def test_commands_in_another_folder_find_the_checkout(tiny_data, tmp_path):
    run("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *TRAIN, "--save-dir", "out", cwd=tmp_path)
    assert (tmp_path / "out" / "checkpoint_last.pt").exists()


def test_the_repository_in_place_of_the_package_is_refused(tiny_data, tmp_path):
    (tmp_path / "lwc_fairseq").symlink_to(ROOT)
    done = run("fairseq-train", tiny_data, "--user-dir", "lwc_fairseq", *TRAIN, cwd=tmp_path, check=False)
    assert done.returncode
    assert done.stderr.splitlines()[-1].endswith("is not the package: give lwc_fairseq/lwc_fairseq")


def test_an_imported_plugin_is_known_by_any_path(tmp_path):
    (tmp_path / "link").symlink_to(ROOT)
    script = dedent(f"""
        from argparse import Namespace
        import lwc_fairseq
        from fairseq.utils import import_user_module
        for path in ("lwc_fairseq", "link/lwc_fairseq", "{ROOT}/tests/../lwc_fairseq/", "lwc_fairseq"):
            import_user_module(Namespace(user_dir=path))
    """)
    run("python", "-c", script, cwd=tmp_path)


@LONG
def test_two_trainings_in_one_process(tiny_data, tmp_path):
    script = dedent("""
        import sys
        from fairseq_cli.train import cli_main
        for out in ("one", "two"):
            sys.argv = ["fairseq-train", *sys.argv[1:], "--save-dir", out]
            cli_main()
    """)
    arguments = (tiny_data, "--user-dir", "lwc_fairseq", *TRAIN)
    run("python", "-c", script, *arguments, cwd=tmp_path)
    assert (tmp_path / "one" / "checkpoint_last.pt").exists() and (tmp_path / "two" / "checkpoint_last.pt").exists()


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
    run("python", "-c", script, cwd=second_plugin.parent)
