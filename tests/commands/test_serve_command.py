"""`lwc-fairseq serve`: what the server answers, to whom, and how the command starts and ends."""

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

from browser import data_of_view, opened
from conftest import FRONT_DOOR, ROOT, refusal
from lwc_fairseq import load
from lwc_fairseq.analysis.attention_server import LONGEST, PageServer


@contextmanager
def serve(*of_model: Path) -> Iterator[PageServer]:
    with PageServer(load(*map(str, of_model), attention=True), 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def server(tiny_checkpoint, tiny_data):
    with serve(tiny_checkpoint, tiny_data) as server:
        yield server


def get(server, source: str | None = None, path: str = "/", **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    query = "" if source is None else "?" + urlencode({"source": source})
    connection.request("GET", path + query, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def data_in(text: str) -> dict:
    return data_of_view(text, "attention_view")["views"][0][0]


def test_only_this_machine_is_answered(server):
    assert server.server_address[0] == "127.0.0.1"
    assert get(server, Host="localhost", Sec_Fetch_Site="same-origin")[0] == 200
    assert get(server, "ba de", Host="example.org")[0] == 403  # a site whose name leads to this machine
    assert get(server, "ba de", Sec_Fetch_Site="cross-site")[0] == 403  # a picture of another site with this address
    assert get(server, path="/etc/passwd")[0] == get(server, path="//[")[0] == 404


def test_a_sentence_is_translated(server):
    assert "<input" in get(server)[1]
    status, text = get(server, 'ba "de"')
    assert status == 200 and 'value="ba &quot;de&quot;"' in text
    assert data_in(text)["source"] == ["ba", '"de"<unk>', "</s>"] and len(data_in(text)["hypotheses"]) == 5


def test_the_model_of_the_repository_reads_raw_text():
    with serve(ROOT / "examples" / "multi30k" / "abd_lwc.zip") as server:
        text = get(server, "Zwei Hunde spielen im Schnee.")[1]
    assert "zwei hunde spielen im schnee . → two dogs play in the snow ." in text
    assert data_in(text)["source"] == ["zwei", "hunde", "spielen", "im", "schnee", ".", "</s>"]


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        (" \t", 400, f"This has 0 sub-words: type a sentence of 1 to {LONGEST}."),
        ("ba " * (LONGEST + 1), 400, f"This has {LONGEST + 1} sub-words"),
        ("b" * 5000, 400, "This has 5,000 characters"),
        ("<script>alert(1)</script>", 200, "&lt;script&gt;"),
        ("\0 \ud7ff \U0010ffff", 200, "&lt;unk&gt;"),
        ("ba" * 40000, 414, ""),
    ],
)
def test_bad_input_is_answered(server, source, status, words):
    found, text = get(server, source)
    assert found == status and words in text and "<script>alert" not in text
    assert get(server, "ba")[0] == 200


def test_two_users_at_once(server):
    sources = ["ba de", "fi", "de fi ba"] * 2
    with ThreadPoolExecutor(len(sources)) as pool:
        answers = list(pool.map(lambda source: get(server, source), sources))
    assert [data_in(text)["source"] for _, text in answers] == [[*source.split(), "</s>"] for source in sources]


def test_type_into_the_page(server):
    address = f"http://127.0.0.1:{server.server_port}/"
    with opened(address) as page:
        page.get_by_role("textbox").fill("ba de")
        page.keyboard.press("Enter")
        page.locator("#target button").first.hover()
        assert page.locator("#source bdi").all_inner_texts() == ["ba", "de", "</s>"]
        assert page.get_by_role("textbox").input_value() == "ba de"


def test_command(server, tiny_checkpoint, tiny_data):
    command = ["lwc-fairseq", "serve", tiny_checkpoint, "--data", tiny_data, "--port"]
    assert "Address already in use" in refusal(*command[1:], server.server_port)
    assert "--port 70000: " in refusal(*command[1:], "70000")
    started = subprocess.Popen(
        [*map(str, command), "0"],
        env=FRONT_DOOR.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that starts the tests in the background lets them ignore Ctrl-C, and so would this process
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    line = started.stdout.readline()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ .* this machine alone; Ctrl-C ends\n", line)
    started.send_signal(signal.SIGINT)
    assert started.communicate(timeout=60)[1].endswith("lwc-fairseq: stopped\n") and started.returncode == 130
