"""Packs: what they hold, and how `load` and the commands take a file or an address."""

import re
import shutil
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import torch

from conftest import LONG, TASK, TINY_TRAINING, refusal, refused, run
from lwc_fairseq import load
from lwc_fairseq.analysis.attention import load as load_with_task
from lwc_fairseq.files import checksum
from lwc_fairseq.packs import is_pack, unpack
from lwc_fairseq_compat import UserError

SENTENCES = ["BA DE", "fi", "ga ge gi go ba"]


@pytest.fixture(scope="module")
def data(tiny_data, tmp_path_factory):
    """The tiny data with a `text.yaml`, which lower-cases sources, and codes that split no word of the data."""
    folder = tmp_path_factory.mktemp("packed") / "data"
    shutil.copytree(tiny_data, folder)
    (folder / "text.yaml").write_text("source: de\ntarget: en\ncase: lower\nbpe: subword_nmt\ncodes: codes\n")
    merges = "".join(f"{first} {second}</w>\n" for first in "bdfgk" for second in "aeio")
    (folder / "codes").write_text(f"#version: 0.2\n{merges}")
    return folder


@pytest.fixture(scope="module")
def pack(tiny_checkpoint, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    (folder / "card.md").write_text("# A tiny model\n")
    done = run(
        "lwc-fairseq", "pack", tiny_checkpoint, "--data", data, "--card", folder / "card.md", "--out", folder / "a.zip"
    )
    assert f"sha256 {checksum(folder / 'a.zip')}" in done.stdout
    return folder / "a.zip"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lwc_fairseq"


@pytest.fixture
def address(pack):
    """The address of the pack on a server of this machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=pack.parent)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{pack.name}"
        server.shutdown()


def test_weights_are_those_of_the_checkpoint_in_half_precision(pack, tiny_checkpoint, data):
    (packed,), (trained,) = load(pack).models, load(tiny_checkpoint, data).models
    for name, weight in trained.state_dict().items():
        assert torch.equal(packed.state_dict()[name], weight.half().float()), name


def test_translates_raw_text_without_the_data(pack, tiny_checkpoint, data):
    model = load(tiny_checkpoint, data)
    model.half().float()
    expected = model.translate(SENTENCES)
    assert load(pack).translate(SENTENCES) == expected
    text = "".join(f"{line}\n" for line in SENTENCES)
    assert run("lwc-fairseq", "translate", pack, "--cpu", stdin=text).stdout.splitlines() == expected


def test_its_attention_is_shown_for_raw_text(pack, tmp_path):
    run("lwc-fairseq", "attention", pack, "--source", SENTENCES[0], "--out", tmp_path / "a.html")
    assert load(pack).translate(SENTENCES[0]).split()[0] in (tmp_path / "a.html").read_text()


@LONG
def test_export_takes_it(pack, tmp_path):
    run("lwc-fairseq", "export", pack, tmp_path / "exported")
    text = "".join(f"{line}\n" for line in SENTENCES)
    translated = run("python", tmp_path / "exported" / "translate.py", stdin=text).stdout
    assert translated.splitlines() == load(pack).translate(SENTENCES)


def test_what_it_holds(pack, tiny_checkpoint, data, cache):
    folder = unpack(pack)
    assert folder == cache / checksum(pack)
    assert {path.name for path in folder.iterdir()} == {
        *("model.pt", "dict.de.txt", "dict.en.txt", "text.yaml", "codes", "README.md")
    }
    assert (folder / "README.md").read_text() == "# A tiny model\n"
    content = (folder / "model.pt").read_bytes()
    for path in (data, tiny_checkpoint.parent):
        assert str(path).encode() not in content
    assert len(content) < tiny_checkpoint.stat().st_size / 3
    assert is_pack(pack) and not is_pack(tiny_checkpoint) and not is_pack(folder / "text.yaml")


def test_an_address_is_fetched_once(pack, address):
    source = f"{address}#sha256={checksum(pack).upper()}"
    expected = load(pack).translate(SENTENCES)
    shutil.rmtree(unpack(pack))
    assert load(source).translate(SENTENCES) == expected
    assert load(source.replace("127.0.0.1", "127.0.0.2")).translate(SENTENCES) == expected  # it is in the cache


def test_an_address_that_does_not_work(address, cache):
    wrong = "0" * 64
    for source, message in {
        address: f"{address}: add the checksum that is published with it: {address}#sha256=…",
        f"{address}#sha256={wrong}": f"{address}: its checksum is not {wrong}",
        f"{address}x#sha256={wrong}": f"{address}x: HTTP Error 404",
        f"http://127.0.0.1:1/a.zip#sha256={wrong}": "fetch the file on another machine, and give its path",
        f"http://127.0.0.1:1/a b.zip#sha256={wrong}": "/a b.zip: URL can't contain control characters",
        f"http://127.0.0.1:1/é.zip#sha256={wrong}": "/é.zip: 'ascii' codec can't encode",
        f"http://[::1/a.zip#sha256={wrong}": "http://[::1/a.zip: Invalid IPv6 URL",
    }.items():
        assert message in refusal("translate", source)
    assert not cache.exists() or not any(cache.iterdir())
    assert f"{address}x: HTTP Error 404" in refusal("export", f"{address}x#sha256={wrong}", cache / "folder")


def test_an_archive_with_other_members(pack, tmp_path, cache):
    shutil.copy(pack, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "a") as archive:
        archive.writestr("../evil.py", "")
    with pytest.raises(UserError, match=r"\.\./evil\.py: a pack has no such member"):
        load(tmp_path / "b.zip")
    assert not any(cache.iterdir()) and not list(tmp_path.rglob("evil.py"))


def test_a_damaged_pack(pack, tmp_path, cache):
    with zipfile.ZipFile(pack) as archive:
        place = archive.getinfo("model.pt").header_offset + 1000
    content = bytearray(pack.read_bytes())
    content[place] ^= 255
    (tmp_path / "b.zip").write_bytes(content)
    with pytest.raises(UserError, match=r"b\.zip: a damaged pack \(.*\): fetch it again"):
        load(tmp_path / "b.zip")
    assert not any(cache.iterdir())


def test_an_address_that_ends_early():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"x" * 10)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(UserError, match="it ended after 10 of 1000 bytes"):
            load(f"http://127.0.0.1:{server.server_port}/a.zip#sha256={'0' * 64}")
        server.shutdown()


def test_a_pack_that_is_larger_than_the_disk(pack, monkeypatch, cache):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(UserError, match=r"unpacked, it has [\d,]+ bytes, but .* has room for 1,000 only"):
        load(pack)
    assert not any(cache.iterdir())


def test_an_archive_of_another_compression(pack, tmp_path):
    content = bytearray(pack.read_bytes())
    with zipfile.ZipFile(pack) as archive:
        place = archive.getinfo("model.pt").header_offset
    directory = content.rindex(b"PK\x01\x02", 0, content.rindex(b"model.pt"))
    content[place + 8] = content[directory + 10] = 9  # Deflate64
    (tmp_path / "b.zip").write_bytes(content)
    with pytest.raises(UserError, match=r"b\.zip: .*compression.*: a pack is as `lwc-fairseq pack` has written it"):
        load(tmp_path / "b.zip")


def test_files_outside_the_pack(pack, tmp_path):
    shutil.unpack_archive(pack, tmp_path / "folder")
    (tmp_path / "codes").write_text("secret")
    text = tmp_path / "folder" / "text.yaml"
    text.write_text(text.read_text().replace("codes: codes", "codes: ../codes"))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for path in (tmp_path / "folder").iterdir():
            archive.write(path, path.name)
    with pytest.raises(UserError, match=r"codes: \.\./codes: name a file beside text\.yaml, without a folder"):
        load(tmp_path / "b.zip")


def test_a_cache_that_cannot_be_written(pack, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set XDG_CACHE_HOME to a folder for unpacked packs"):
        load(pack)


def test_two_processes_unpack_at_once(pack, cache, monkeypatch):
    """The slower one uses what the other has unpacked."""

    def extract(archive, member, path):
        (cache / checksum(pack)).mkdir(exist_ok=True)
        (cache / checksum(pack) / "model.pt").touch()

    monkeypatch.setattr(zipfile.ZipFile, "extract", extract)
    assert unpack(pack) == cache / checksum(pack) and [path.name for path in cache.iterdir()] == [checksum(pack)]


def test_a_folder_that_has_lost_files_is_unpacked_again(pack, address, cache):
    for source in (pack, f"{address}#sha256={checksum(pack)}"):
        whole = sorted(path.name for path in unpack(source).iterdir())
        for name in ("model.pt", "dict.en.txt", "codes"):
            (cache / checksum(pack) / name).unlink()
            assert sorted(path.name for path in unpack(source).iterdir()) == whole


def test_readers_of_attention_take_its_address_and_several_folders(pack, address, tiny_data):
    data = f"{tiny_data}:{tiny_data}"
    _, task = load_with_task(f"{address}#sha256={checksum(pack)}", data)
    assert task.cfg.data == data
    with pytest.raises(UserError, match="--data none: no such folder"):
        load_with_task(str(pack), f"{tiny_data}:none")


def test_other_commands(pack, tiny_data, tmp_path):
    """One that reads attention takes it, one for checkpoints says that it does not."""
    run("lwc-fairseq", "align", pack, "--data", tiny_data, "--out", tmp_path / "links")
    assert len((tmp_path / "links").read_text().splitlines()) == 20
    message = refusal("average", pack, "--out", tmp_path / "b.pt")
    assert f"{pack}: a pack, which is for translation: give a checkpoint" in message


def test_what_is_missing(tiny_checkpoint, tiny_data, data, pack, tmp_path):
    card, out = pack.parent / "card.md", tmp_path / "a.zip"
    command = ("lwc-fairseq", "pack", tiny_checkpoint, "--out", out)
    assert "no text.yaml says how its text was made" in refused(*command, "--data", tiny_data, "--card", card)
    assert f"--card {tmp_path / 'c.md'}: no such file" in refused(*command, "--data", data, "--card", tmp_path / "c.md")
    state = torch.load(tiny_checkpoint)
    del state["cfg"]["task"]["source_lang"]  # as of a language model
    torch.save(state, tmp_path / "lm.pt")
    command = ("lwc-fairseq", "pack", tmp_path / "lm.pt", "--out", out, "--data", data, "--card", card)
    assert f"{tmp_path / 'lm.pt'}: give a model of --task concat_translation or translation" in refused(*command)
    assert not out.exists()


def reorder(dictionary):
    first, *others = dictionary.read_text().splitlines(keepends=True)
    dictionary.write_text("".join([*others, first]))


def test_another_dictionary_is_refused(tiny_checkpoint, data, pack, tmp_path, cache):
    """When it is packed, and when it is read with another folder or beside another pack."""
    shutil.copytree(data, tmp_path / "other")
    for language in ("de", "en"):
        reorder(tmp_path / "other" / f"dict.{language}.txt")
    message = "the words of .*dict.*txt are not those that the model was trained with: word 1 is"
    command = ("lwc-fairseq", "pack", tiny_checkpoint, "--data", tmp_path / "other", "--card", pack.parent / "card.md")
    assert re.search(message, refused(*command, "--out", tmp_path / "b.zip"))
    assert not (tmp_path / "b.zip").exists()
    with pytest.raises(UserError, match=message):
        load(pack, tmp_path / "other")
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(pack) as archive, zipfile.ZipFile(damaged, "w") as copy:
        for name in archive.namelist():
            lines = archive.read(name)
            copy.writestr(name, b"".join(lines.splitlines(keepends=True)[::-1]) if name.startswith("dict") else lines)
    with pytest.raises(UserError, match=message):
        load(damaged)


def test_a_model_of_the_opposite_direction_is_refused(tiny_checkpoint, data, pack, tmp_path):
    state = torch.load(tiny_checkpoint)
    state["cfg"]["task"] |= {"source_lang": "en", "target_lang": "de"}
    torch.save(state, tmp_path / "reverse.pt")
    others = ("--card", pack.parent / "card.md", "--out", tmp_path / "b.zip")
    message = "text.yaml is for de to en, but the model translates en to de"
    assert message in refusal("pack", tmp_path / "reverse.pt", "--data", data, *others)
    shutil.copytree(data, tmp_path / "swapped")
    (tmp_path / "swapped" / "text.yaml").write_text("source: en\ntarget: de\n")
    message = "text.yaml is for en to de, but the model translates de to en"
    assert message in refusal("pack", tiny_checkpoint, "--data", tmp_path / "swapped", *others)
    with pytest.raises(UserError, match=message):  # the training took its languages from the names of its files
        load(tiny_checkpoint, tmp_path / "swapped")


@pytest.mark.parametrize("arch", ["transformer_small", "lstm"])
def test_models_without_a_dataclass(arch, data, pack, tmp_path):
    """fairseq keeps all options of their training beside those of the model."""
    narrow = {
        "transformer_small": ("--encoder-layers", "1", "--decoder-layers", "1", "--encoder-embed-dim", "8"),
        "lstm": ("--encoder-embed-dim", "8", "--decoder-embed-dim", "8", "--decoder-out-embed-dim", "8"),
    }
    train = ("--arch", arch, *narrow[arch], "--max-update", "1", "--save-dir", tmp_path / "run")
    run("fairseq-train", data, *TASK, *TINY_TRAINING, *train)
    trained = tmp_path / "run" / "checkpoint_last.pt"
    run("lwc-fairseq", "pack", trained, "--data", data, "--card", pack.parent / "card.md", "--out", tmp_path / "b.zip")
    model = load(trained, data)
    model.half().float()
    assert load(tmp_path / "b.zip").translate(SENTENCES) == model.translate(SENTENCES)
    content = (unpack(tmp_path / "b.zip") / "model.pt").read_bytes()
    assert str(tmp_path).encode() not in content and str(data).encode() not in content


def test_what_cannot_be_packed(tiny_checkpoint, data, pack, tmp_path):
    card = ("--card", pack.parent / "card.md")
    torch.save({"args": None, "model": {}}, tmp_path / "old.pt")
    old = ("lwc-fairseq", "pack", tmp_path / "old.pt", "--data", data, *card, "--out", tmp_path / "b.zip")
    assert f"{tmp_path / 'old.pt'}: it has no configuration" in refused(*old)
    nowhere = refusal("pack", tiny_checkpoint, "--data", data, *card, "--out", "/proc/b.zip")
    assert "/proc/b.zip: No such file or directory" in nowhere
