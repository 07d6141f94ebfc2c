"""Downloads of examples/fetch.py, from a server on this machine."""

import fcntl
import hashlib
import http.server
import io
import os
import random
import re
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import pytest
import yaml

from conftest import ROOT, run


def archive(size: int) -> bytes:
    """A .tgz of a file of that many bytes, which cannot be compressed."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as written:
        entry = tarfile.TarInfo("text")
        entry.size = size
        written.addfile(entry, io.BytesIO(random.Random(1).randbytes(size)))
    return content.getvalue()


CONTENT, OTHER = archive(1_000_000), archive(5)  # made once: gzip's head holds the second


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT; the server says whether ranges are, and after how many bytes it hangs up."""

    def do_GET(self):
        server, start = self.server, 0
        server.asked.append(self.headers.get("Range"))
        if "missing" in self.path:
            self.send_error(404)
            return
        if server.ranges and self.headers.get("Range"):
            start = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])
            if start >= len(CONTENT):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : start + (server.hang_up.pop() if server.hang_up else len(CONTENT))])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.ranges, server.hang_up, server.asked = True, [], []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def fetch(server, tmp_path):
    """Run the script with one source, whose entry is given."""

    def call(*flags, check=True, name="corpus.tgz", **entry):
        entry = {"url": f"http://127.0.0.1:{server.server_port}/corpus.tgz", **entry}
        (tmp_path / "sources.yaml").write_text(yaml.safe_dump({name: entry}))
        flags = ("--to", tmp_path / "data", "--sources", tmp_path / "sources.yaml", *flags)
        return run("python", ROOT / "examples" / "fetch.py", name, *flags, check=check)

    return call


KNOWN = {"bytes": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def part_from(server) -> str:
    return f"corpus.tgz.{crc32(f'http://127.0.0.1:{server.server_port}/corpus.tgz'.encode()):08x}.part"


def error(done) -> str:
    assert done.returncode and "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_a_file_arrives_with_progress_and_is_not_fetched_twice(fetch, server, tmp_path):
    done = fetch(**KNOWN)
    path = tmp_path / "data" / "corpus.tgz"
    assert done.stdout.strip() == str(path) and path.read_bytes() == CONTENT
    assert "100%" in done.stderr and files(path.parent) == ["corpus.tgz"]
    assert "is there already" in fetch(**KNOWN).stderr and len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False], ids=["with ranges", "without"])
def test_an_interrupted_download_goes_on(fetch, server, tmp_path, ranges):
    server.ranges, server.hang_up = ranges, [300_000]
    assert "the same command goes on where it stopped" in error(fetch(check=False, **KNOWN))
    assert files(tmp_path / "data") == [part_from(server)]
    fetch(**KNOWN)
    assert server.asked == [None, "bytes=300000-"]
    assert (tmp_path / "data" / "corpus.tgz").read_bytes() == CONTENT and files(tmp_path / "data") == ["corpus.tgz"]


def test_a_whole_part_is_only_compared(fetch, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / part_from(server)).write_bytes(CONTENT)
    fetch(**KNOWN)
    assert (tmp_path / "data" / "corpus.tgz").read_bytes() == CONTENT and server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_from_another_place_is_not_continued(fetch, server, tmp_path):
    server.hang_up = [300_000]
    error(fetch(check=False))
    fetch("--from", f"http://127.0.0.1:{server.server_port}/mirror")
    assert server.asked == [None, None] and files(tmp_path / "data") == ["corpus.tgz", "corpus.tgz.sha256"]


@pytest.mark.parametrize("wrong", [{"bytes": 5}, {"sha256": "0" * 64}, {"md5": "0" * 32}])
def test_another_file_is_refused_and_removed(fetch, tmp_path, wrong):
    assert "is not the file that was expected" in error(fetch(check=False, **{**KNOWN, **wrong}))
    assert files(tmp_path / "data") == []


def test_without_a_published_checksum_it_is_kept(fetch, tmp_path):
    fetch()
    assert (tmp_path / "data" / "corpus.tgz.sha256").read_text() == f"{KNOWN['sha256']}  corpus.tgz\n"


def test_from_a_folder_or_a_mirror(fetch, server, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    assert "there is no corpus.tgz" in error(fetch("--from", own, check=False))
    (own / "corpus.tgz").write_bytes(b"<html>")
    assert "is damaged, or not a .tgz file" in error(fetch("--from", own, check=False, **KNOWN))
    (own / "corpus.tgz").write_bytes(OTHER)
    assert "is not the file at" in fetch("--from", own, **KNOWN).stderr
    assert (tmp_path / "data" / "corpus.tgz").read_bytes() == OTHER and not server.asked
    (tmp_path / "data" / "corpus.tgz").unlink()
    fetch("--from", f"http://127.0.0.1:{server.server_port}/mirror", url="http://127.0.0.1:9/moved/corpus.tgz", **KNOWN)
    assert (tmp_path / "data" / "corpus.tgz").read_bytes() == CONTENT


def test_a_page_instead_of_the_file_is_refused(fetch, server, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "CONTENT", b"<html>It has moved.</html>")
    for name, kind in (("corpus.tgz", ".tgz"), ("train.en", ".en")):
        refused = fetch(check=False, name=name)
        assert f"expected a {kind} file" in error(refused) and files(tmp_path / "data") == []


def test_a_copy_does_not_go_on_from_a_download(fetch, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / part_from(server)).write_bytes(CONTENT[:1000])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "corpus.tgz").write_bytes(CONTENT)
    fetch("--from", tmp_path / "mine", **KNOWN)
    assert (tmp_path / "data" / "corpus.tgz").read_bytes() == CONTENT


def test_a_name_of_two_sources_is_nobodys(tmp_path):
    urls = {"wmt12.tgz": "https://a/12/test.tgz", "wmt13.tgz": "https://a/13/test.tgz"}
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({name: {"url": url} for name, url in urls.items()}))
    (tmp_path / "test.tgz").write_bytes(OTHER)
    flags = ("--from", tmp_path, "--to", tmp_path / "data", "--sources", tmp_path / "sources.yaml")
    assert "there is no wmt13.tgz" in error(
        run("python", ROOT / "examples" / "fetch.py", "wmt13.tgz", *flags, check=False)
    )


def test_room_for_all_that_follows_is_asked_for_first(fetch, server, tmp_path):
    assert "MiB are free" in error(fetch("--room", "1e9", check=False, **KNOWN)) and not server.asked
    fetch("--room", "0.001", **KNOWN)
    fetch("--room", "1e9", **KNOWN)  # the following ones exist or are being made


def test_bad_input(fetch, server, tmp_path):
    address = f"http://127.0.0.1:{server.server_port}"
    assert "404 Not Found: get the file elsewhere" in error(fetch(check=False, url=f"{address}/missing.tgz"))
    for place, reason in (
        ("http://[::1/x", "Invalid IPv6 URL"),
        ("://x", "unknown url type"),
        (f"{address}/é", "'ascii'"),
    ):
        assert reason in error(fetch("--from", place, check=False))
    message = error(fetch(check=False, url="http://127.0.0.1:9/corpus.tgz"))
    assert "the same command goes on" in message and "a folder with the file, or a mirror, by --from" in message
    assert "MiB are free" in error(fetch(check=False, **{**KNOWN, "bytes": 2**60}))
    done = run("python", ROOT / "examples" / "fetch.py", "nothing", "--to", tmp_path / "data", check=False)
    assert "nothing: not in" in error(done) and "europarl-v7" in error(done)
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "x"
    done = run("python", ROOT / "examples" / "fetch.py", "multi30k/train.de", "--to", place, check=False)
    assert error(done).endswith(f"{place}: Not a directory: mend this, or name another folder by --to or --from")


def waits_for(folder) -> bool:
    """Whether a process waits for the lock of a folder."""
    locks = Path("/proc/locks").read_text().splitlines()
    return any("->" in lock and f":{folder.stat().st_ino} " in lock for lock in locks)


def test_two_processes_do_not_meet(fetch, server, tmp_path):
    """The second one waits, and then finds the file. Here, the test is the first one."""
    folder = tmp_path / "data"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        other, limit = pool.submit(fetch, **KNOWN), time.monotonic() + 120
        try:
            while not waits_for(folder):
                assert not other.done() and time.monotonic() < limit
                time.sleep(0.1)
            (folder / "corpus.tgz").write_bytes(CONTENT)
        finally:
            os.close(handle)
        said = other.result().stderr
    assert "another process fetches files into it" in said and "is there already" in said and not server.asked


def test_the_list_of_sources():
    for name, entry in yaml.safe_load((ROOT / "examples" / "sources.yaml").read_text()).items():
        assert entry["url"].startswith(("https://", "http://www-lium.univ-lemans.fr/")), name  # which has no other
        assert len(entry.get("sha256", "0" * 64)) == 64 and len(entry.get("md5", "0" * 32)) == 32
