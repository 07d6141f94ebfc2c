"""The code and the commands of docs/extending.md, in a user's own folder."""

import re
import shlex

import pytest
import torch

from conftest import LONG, ROOT, run, run_python
from pages import commands, read

pytestmark = LONG
PAGE = ROOT / "docs" / "extending.md"


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory):
    """A folder with the files of the page. The first line of a block names its file."""
    folder = tmp_path_factory.mktemp("own")
    blocks = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", read(PAGE), flags=re.DOTALL)
    for name, text in blocks:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert len(blocks) == 3
    return folder


@pytest.fixture(scope="module")
def outputs(own_folder, tiny_data) -> dict[str, str]:
    """What each command prints, with smaller data."""
    here = {"cwd": own_folder}
    return {
        command: run(*shlex.split(command.replace("runs/quickstart/data", str(tiny_data))), **here).stdout
        for command in commands(PAGE)
    }


def test_a_flag_of_ones_own(outputs, own_folder):
    loaded = re.search(r"`(lwc_fairseq\.load\(.*\))`", PAGE.read_text(encoding="utf-8"))[1]
    code = f"import lwc_fairseq; print({loaded}.models[0].encoder.stack.embedding.scale)"
    done = run_python("-c", code, cwd=own_folder)
    assert done.stdout.splitlines()[-1] == "1.0"
    assert (own_folder / "attention.png").stat().st_size > 1000


def test_an_attention_of_ones_own_has_the_initial_weights_of_the_model(outputs, own_folder):
    saved = torch.load(own_folder / "runs" / "my_table" / "general" / "seed1" / "checkpoint_best.pt")["model"]
    keys = [name for name in saved if "attentions" in name]
    assert keys == [f"decoder.layers.0.attentions.{k}.key.weight" for k in range(2)]
    for key in keys:  # nn.Linear's own weights have a standard deviation of 0.07; 20 updates move a weight by 0.02
        assert abs(saved[key].std() - 0.1) < 0.01


def test_a_table_of_ones_own_and_its_report(outputs, own_folder):
    page = (own_folder / "runs" / "my_table" / "table.md").read_text()
    assert all(f"| {name} |" in page for name in ("deepatt", "general"))
    report = (own_folder / "runs" / "my_table" / "report.html").read_text()
    assert report.count("attention of ") == 2


def test_an_unknown_package_is_named(own_folder, tiny_data):
    model = own_folder / "runs" / "ablated" / "checkpoint_best.pt"
    command = ("lwc-fairseq", "align", model, "--data", tiny_data, "--user-dir", "their_models")
    done = run(*command, check=False)
    said = (
        "lwc-fairseq: error: --user-dir their_models: there is no such folder, and no package of this name is installed"
    )
    assert done.returncode and done.stderr.splitlines()[-1] == said
