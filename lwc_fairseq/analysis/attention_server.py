"""A server of pages to explore attention, for the browsers of this machine alone."""

import html
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from lwc_fairseq_compat import UserError

from ..hub import Translator
from ..pages import page
from .attention import attend, translations
from .attention_page import LONGEST, make_page, page_data


class PageServer(ThreadingHTTPServer):
    """Answers each request in a thread of its own; one at a time translates. `load` must have kept the attention."""

    daemon_threads = True

    def __init__(self, translator: Translator, port: int):
        super().__init__(("127.0.0.1", port), PageHandler)
        self.translator, self.lock = translator, threading.Lock()

    def explore(self, text: str) -> str:
        """Return the page for a sentence. Raises UserError if it has no words or too many."""
        model, task = self.translator.models[0], self.translator.task
        longest = min(LONGEST, self.translator.max_positions[0] - 1)  # without the end symbol
        if len(text) > 20 * longest:  # sub-words of so long a text would take long to count
            raise UserError(f"This has {len(text):,} characters: type a sentence of 1 to {longest} sub-words.")
        with self.lock:
            source = self.translator.apply_bpe(self.translator.tokenize(text))
            count = len(source.split())
            if not 0 < count <= longest:
                raise UserError(f"This has {count} sub-words: type a sentence of 1 to {longest}.")
            hypotheses, beams = translations(model, task, source, None)
            attentions = [attend(model, task, source, hypothesis) for hypothesis in hypotheses]
        return make_page(page_data(task, hypotheses, attentions, beams), form=form(text))


class PageHandler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = 60  # seconds for a request to arrive

    def do_GET(self) -> None:
        with suppress(ConnectionError):  # the user has left
            self.respond()

    def respond(self) -> None:
        path, _, query = self.path.partition("?")
        host = self.headers.get("Host", "").split(":")[0]
        site = self.headers.get("Sec-Fetch-Site", "none")  # who asks; only browsers say so
        # A page of another site may have a name that leads to this machine, or an address of this server in it.
        if host not in ("127.0.0.1", "localhost") or site not in ("none", "same-origin"):
            self.send_error(HTTPStatus.FORBIDDEN, "Type this address into the browser")
        elif path == "/favicon.ico":  # browsers ask for it
            self.answer(HTTPStatus.NO_CONTENT, "")
        elif path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        elif text := " ".join(parse_qs(query).get("source", [])):
            try:
                self.answer(HTTPStatus.OK, self.server.explore(text))
            except UserError as error:
                parts = [form(text), f"<p role=alert>{html.escape(str(error))}</p>"]
                self.answer(HTTPStatus.BAD_REQUEST, page("Attention", parts))
        else:
            self.answer(HTTPStatus.OK, page("Attention", [form("")]))

    def answer(self, status: HTTPStatus, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args) -> None:
        """Log nothing, since the sentences are in the addresses."""


def form(text: str) -> str:
    """Return a field to type into, with a text in it."""
    rules = "form { display: flex; gap: .5rem; } [name=source] { flex: 1; }"
    field = f'<input name="source" value="{html.escape(text)}" dir="auto" aria-label="Sentence" required>'
    return f"<style>{rules}</style><form>{field}<button>Translate</button></form>"
