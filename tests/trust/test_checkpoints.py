"""Files that are no checkpoints: the commands refuse them in one line and run nothing that is in them."""

import ast
import codecs
import importlib
import io
import os
import pickle
import random
import re
import zipfile
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
import torch

from conftest import FAMILIES, LONG, ROOT, TASK, TINY_TRAINING, run
from lwc_fairseq import load
from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.checkpoints import value_of


class Payload:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, call, *arguments):
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


def payloads(mark) -> dict[str, object]:
    """Ways to run code, each of which would make `mark`."""
    command = f"touch '{mark}'"
    inner = pickle.dumps(Payload(os.system, command))
    return {
        "system": Payload(os.system, command),
        "eval": Payload(eval, f"__import__('os').system({command!r})"),
        "open": Payload(open, str(mark), "w"),
        "exec": Payload(exec, f"open({str(mark)!r}, 'w')"),
        "pickle in pickle": Payload(pickle.loads, inner),
        "torch.load": Payload(torch.load, io.BytesIO(inner)),
        "codecs": Payload(codecs.open, str(mark), "w"),
    }


def with_payload(checkpoint, place: str, payload) -> dict:
    """A real checkpoint, with the payload somewhere in it."""
    state = torch.load(checkpoint)
    if place == "weights":
        state["model"]["encoder.payload"] = payload
    elif place == "configuration":
        state["cfg"]["model"] = payload
    elif place == "optimizer":
        state["last_optimizer_state"] = payload
    else:
        return payload
    return state


def refused(command, *arguments) -> str:
    """The line with which a command refuses; it prints no traceback."""
    done = run(command, *arguments, check=False, stdin="ba de\n")
    assert done.returncode, done.stdout[-500:]
    line = done.stderr.strip().splitlines()[-1]
    assert f"{command}: error: " in line and "Traceback" not in done.stderr, done.stderr[-3000:]
    return line


def readers(path, data, out) -> list[tuple]:
    """The commands that read a checkpoint."""
    small = (*TASK, *TINY_TRAINING, *FAMILIES["lwc"], "--max-update", "1", "--save-dir", out)
    return [
        ("fairseq-generate", data, *TASK, "--cpu", "--path", path),
        ("fairseq-interactive", data, *TASK, "--cpu", "--path", path),
        ("fairseq-validate", data, *TASK, "--cpu", "--max-tokens", "400", "--path", path),
        ("fairseq-train", data, *small, "--restore-file", path),
        ("fairseq-train", data, *small, "--finetune-from-model", path),
        ("lwc-fairseq", "average", path, path, "--out", out / "average.pt"),
        ("lwc-fairseq", "attention", path, "--data", data, "--source", "ba de", "--out", out / "attention.png"),
    ]


@pytest.mark.parametrize("place", ["alone", "weights", "configuration", "optimizer"])
def test_pickles_that_run_code(tiny_checkpoint, tiny_data, tmp_path, place):
    mark, path = tmp_path / "it ran", tmp_path / "checkpoint.pt"
    for name, payload in payloads(mark).items():
        for legacy in (False, True):
            torch.save(with_payload(tiny_checkpoint, place, payload), path, _use_new_zipfile_serialization=not legacy)
            with pytest.raises(UserError, match="cannot read checkpoint"):
                load(path, tiny_data)
            assert not mark.exists(), name


def test_the_payloads_would_run(tmp_path):
    for name, payload in payloads(tmp_path / "it ran").items():
        if name != "torch.load":  # which is safe by itself
            pickle.loads(pickle.dumps(payload))
            assert (tmp_path / "it ran").exists(), name
            (tmp_path / "it ran").unlink()


@pytest.mark.parametrize("reader", [pytest.param(i, marks=() if i in (0, 3, 5) else LONG) for i in range(7)])
def test_every_command_refuses_a_pickle_that_runs_code(tiny_checkpoint, tiny_data, tmp_path, reader):
    mark, path = tmp_path / "it ran", tmp_path / "checkpoint.pt"
    torch.save(with_payload(tiny_checkpoint, "weights", Payload(os.system, f"touch '{mark}'")), path)
    assert str(path) in refused(*readers(path, tiny_data, tmp_path)[reader])
    assert not mark.exists() and sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.pt"]


def test_options_that_run_code(tiny_checkpoint, tiny_data, tmp_path):
    """fairseq evaluates some options when it builds a model; here, those of its convolutional model."""
    mark, path, state = tmp_path / "it ran", tmp_path / "checkpoint.pt", torch.load(tiny_checkpoint)
    code = f"""[(8, 3)] + [__import__('os').system("touch '{mark}'")]"""
    state["cfg"]["model"] = Namespace(arch="fconv", encoder_layers=code, data=str(tiny_data))
    torch.save(state, path)
    with pytest.raises(UserError, match="cannot have this value"):
        load(path, tiny_data)
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[(512, 3)] * 9 + [(1024, 3)] * 4",
        "2 * [(1, 2 + 2)]",
        "(0.9, 0.98)",
        " False",
        "-1e-3",
        "{'a': [1]}",
        "'x'",
        "None",
    ],
)
def test_options_that_are_data(text):
    assert value_of(text) == eval(text.strip())


@pytest.mark.parametrize(
    "text",
    [
        *("x", "f()", "1 if 1 else 2", "(1).real", "(" * 9999, "[0] * [0]", f"0x{'f' * 300} * 1.5"),
        *("[0] * 10 ** 9", "[0] * 10001", "'ab' * 5001", " + ".join(["[0] * 10000"] * 900)),
    ],
    ids=range(11),
)
def test_options_that_are_no_data(text):
    with pytest.raises(UserError, match="cannot have this value"):
        value_of(text)


def test_every_module_that_evaluates_options_reads_data():
    root = Path(fairseq.__file__).parent
    for path in root.rglob("*.py"):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        if "examples" not in path.parts and any(isinstance(func, ast.Name) and func.id == "eval" for func in calls):
            assert importlib.import_module(name).eval is value_of, name


def strange_files(checkpoint) -> dict[str, object]:
    """The bytes of a file, or an object to save, under a name that says what is wrong."""
    whole, state = checkpoint.read_bytes(), torch.load(checkpoint)
    model = state["model"]
    name = next(name for name, value in model.items() if value.dim() == 2)
    return {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "without its end": whole[:-30],
        "a name that is no UTF-8": b"/data\xafpkl".join(whole.rsplit(b"/data.pkl", 1)),
        "text": b"no checkpoint\n" * 100,
        "another archive": archive({"data.pkl": b"cos\nsystem\n."}),
        "a list": [1, 2],
        "a number": 5,
        "another program's": {"weights": torch.zeros(3)},
        "without weights": {key: value for key, value in state.items() if key != "model"},
        "weights that are no dictionary": {**state, "model": 5},
        "weights that are no tensors": {**state, "model": {**model, name: "no tensor"}},
        "without a configuration": {**state, "cfg": None, "args": None},
        "a configuration of another kind": {**state, "cfg": [1]},
        "no history": {**state, "optimizer_history": 7},
        "ten times too large": {**state, "model": {**model, name: model[name].repeat(10, 10)}},
        "another number of weights": {**state, "model": {key: value for key, value in model.items() if key != name}},
        "another type of weights": {**state, "model": {**model, name: model[name].to(torch.complex64)}},
    }


REFUSAL = r"checkpoint .*strange\.pt|the checkpoint does not fit this LWCTransformerModel"
"""What each command says of such a file."""


def archive(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as written:
        for name, content in files.items():
            written.writestr(f"archive/{name}", content)
    return out.getvalue()


def write(path, content) -> None:
    """Write one of `strange_files`."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)


def test_files_of_any_other_kind(tiny_checkpoint, tiny_data, tmp_path):
    path = tmp_path / "strange.pt"
    for content in strange_files(tiny_checkpoint).values():
        write(path, content)
        with pytest.raises(UserError, match=REFUSAL):
            load(path, tiny_data)


@pytest.mark.parametrize(
    "kind",
    [
        "without its end",
        *(pytest.param(kind, marks=LONG) for kind in ("a number", "no history", "another type of weights")),
    ],
)
def test_generation_refuses_them_in_one_line(tiny_checkpoint, tiny_data, tmp_path, kind):
    path = tmp_path / "strange.pt"
    write(path, strange_files(tiny_checkpoint)[kind])
    assert re.search(REFUSAL, refused(*readers(path, tiny_data, tmp_path)[0]))


@pytest.mark.parametrize("reader", [3, pytest.param(4, marks=LONG)])
def test_training_does_not_start_from_them(tiny_checkpoint, tiny_data, tmp_path, reader):
    path = tmp_path / "strange.pt"
    for kind in ("truncated", "weights that are no dictionary", "no history", "ten times too large"):
        write(path, strange_files(tiny_checkpoint)[kind])
        if (reader, kind) == (4, "no history"):
            continue  # fine-tuning reads the weights alone
        assert re.search(REFUSAL, refused(*readers(path, tiny_data, tmp_path)[reader]))
        assert sorted(file.name for file in tmp_path.iterdir()) == ["strange.pt"]


def test_models_of_other_families(checkpoints, tiny_data, tmp_path):
    """The model that is named in the checkpoint has other weights."""
    lwc, deepatt = (torch.load(checkpoints[family]) for family in ("lwc", "deepatt"))
    torch.save({**lwc, "model": deepatt["model"]}, tmp_path / "mixed.pt")
    line = refused(*readers(tmp_path / "mixed.pt", tiny_data, tmp_path)[0])
    assert "the checkpoint does not fit this LWC" in line


@pytest.mark.parametrize("files", [60, pytest.param(1000, marks=LONG)])
def test_one_changed_byte_is_seen(tiny_checkpoint, tiny_data, tmp_path, files, record_property):
    """Either the file is refused, or what is read is what was written (names and times in it mean nothing)."""
    whole, path = tiny_checkpoint.read_bytes(), tmp_path / "checkpoint.pt"
    expected, draw, refusals = torch.load(tiny_checkpoint)["model"], random.Random(1), 0
    for _ in range(files):
        changed = bytearray(whole)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        try:
            model = load(path, tiny_data).models[0]
        except UserError:
            refusals += 1
        else:
            found = model.state_dict()
            assert all(torch.equal(found[name], value) for name, value in expected.items())
    record_property("files", files)
    record_property("refused", refusals)
    assert refusals > files / 10


def test_nothing_here_loads_in_the_unsafe_mode():
    folders = (ROOT / "lwc_fairseq", ROOT / "lwc_fairseq_compat", ROOT / "examples")
    paths = [path for folder in folders for path in folder.glob("**/*.py")]
    code = "".join(path.read_text() for path in [*paths, *ROOT.glob("*.py")])
    assert "torch.load(" in code
    for unsafe in ("weights_only=False", "weights_only = False", "pickle.load", "FORCE_NO_WEIGHTS_ONLY"):
        assert unsafe not in code
