"""The documentation site: it builds without a warning, its links lead somewhere, and it needs no network."""

import functools
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from browser import opened
from conftest import LONG, ROOT, run
from pages import links, read


def test_the_gallery_has_every_picture():
    pictures = {path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.[ps][nv]g")}
    gallery = [path for path, _ in links(ROOT / "docs" / "gallery.md") if path.suffix in (".png", ".svg")]
    assert sorted(gallery) == sorted(pictures)


class Page(HTMLParser):
    """What a page of the site refers to, and the anchors that it has."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.parts: list[str] = []
        self.anchors: set[str] = set()
        self.feed(read(path))

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        address = values.get("href") or values.get("src")
        if address and tag == "a":
            self.links.append(address)
        elif address:
            self.parts.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as CONTRIBUTING.md says."""
    for package in ("furo", "myst_parser", "sphinx"):
        pytest.importorskip(package, reason="CONTRIBUTING.md says how to install what the site needs")
    folder = tmp_path_factory.mktemp("site")
    assert "sphinx-build -EW -c docs . build/site" in read(ROOT / "CONTRIBUTING.md")
    settings = ("-EW", "-c", "docs", "-d", folder / "read", ".", folder / "site")
    run("sphinx-build", *settings, cwd=ROOT)
    return folder / "site"


@LONG
def test_links_of_the_site_lead_somewhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert {site / name for name in ("index.html", "docs/api.html", "files/lwc_fairseq/hub.py.html")} <= pages.keys()
    for path, page in pages.items():
        assert not [part for part in page.parts if part.startswith(("http:", "https:", "//"))], path
        for address in (*page.links, *page.parts):
            if address.startswith(("http:", "https:", "data:")):
                continue
            file, _, anchor = unquote(address).partition("#")
            target = path.parent.joinpath(file.partition("?")[0]).resolve() if file else path
            assert target.is_file(), f"{path}: {address}"
            assert not anchor or target.suffix != ".html" or anchor in pages[target].anchors, f"{path}: {address}"


@LONG
def test_the_site_has_the_docstrings(site):
    api = read(site / "docs" / "api.html")
    for name in ("lwc_fairseq.load", "lwc_fairseq.models.DeepAttModel", "lwc_fairseq.modules.ConditionalGRU"):
        assert f'id="{name}"' in api
    assert "Load a model for translation" in api and "the power of the length penalty" in api
    assert ":class:" not in api and ":meth:" not in api


@LONG
def test_the_search_finds_a_page(site):
    """And the site asks no other address for anything."""
    (site / "favicon.ico").touch()  # Chromium asks for it
    handler = functools.partial(SimpleHTTPRequestHandler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with opened(f"http://127.0.0.1:{server.server_port}/") as view:
            view.get_by_role("textbox", name="Search").first.fill("deepnorm")
            view.keyboard.press("Enter")
            found = view.locator("#search-results")
            found.get_by_role("link", name="Models", exact=True).wait_for()
            found.get_by_text("DeepNorm").first.wait_for()
        server.shutdown()
