"""Opens a page in headless Chromium or Chrome, if one is installed, and points, types and clicks by Playwright."""

import base64
import html
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
)
PROBE = """
<meta http-equiv="Content-Security-Policy" content="default-src 'unsafe-inline' data:">
<script>
  const requests = [];
  addEventListener('securitypolicyviolation', event => requests.push(event.blockedURI));
  addEventListener('load', () => {
    const images = [...document.images].map(image => image.complete && image.naturalWidth > 0);
    const fits = document.documentElement.scrollWidth <= innerWidth;
    document.documentElement.dataset.seen = JSON.stringify({images, fits, requests});
  });
</script>"""
"""Stands first in a page: forbids all that is not in the page itself, and keeps what the page asks for beside that."""


@dataclass(frozen=True)
class Seen:
    """What a browser shows of a page."""

    images: list[bool]  # whether each could be shown
    fits: bool  # no scrolling sideways
    requests: list[str]  # addresses outside of the page
    console: list[str]


def data_of_view(page: str, view: str) -> dict:
    """What a page contains for one of its interactive views."""
    (packed,) = re.findall(rf'<script type="text/plain" id="{view}_data">(.*?)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def look_at(page: Path, folder: Path, width: int = 1000) -> Seen:
    """Open a copy of a page that reports what the browser sees. `folder` holds the copy and the browser's profile."""
    browser = find_browser()
    copy = folder / "copy.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("<head>", f"<head>{PROBE}", 1), encoding="utf-8")
    command = [browser, *QUIET, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([*command, copy.as_uri()], capture_output=True, text=True, timeout=120)
    seen = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert seen, f"the browser did not open the page:\n{done.stderr[-2000:]}"
    console = re.findall(r"CONSOLE.*", done.stderr)
    return Seen(**json.loads(html.unescape(seen[1])), console=console)


def find_browser() -> str:
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium or Chrome on this machine")
    return browser


@contextmanager
def opened(address: str, width: int = 1000) -> Iterator:
    """Yield Playwright's view of a page. At the end, it must have caused no error and no request to other addresses."""
    playwright = pytest.importorskip("playwright.sync_api")
    errors, requests = [], []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=QUIET)
        view = browser.new_page(viewport={"width": width, "height": 900})
        view.on("pageerror", lambda error: errors.append(str(error)))
        view.on("console", lambda message: errors.append(message.text))
        view.on("request", lambda request: requests.append(request.url))
        view.goto(address)
        yield view
        browser.close()
    assert not errors
    assert all(request.startswith(address) for request in requests), requests
