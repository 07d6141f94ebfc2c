"""What a Markdown page holds: commands, scripts, links."""

import re
from pathlib import Path

from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""The pages that users read first."""


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def commands(page: Path) -> list[str]:
    """The commands of a page's bash blocks; a backslash continues a line, a comment ends it."""
    blocks = re.findall(r"```bash\n(.*?)```", read(page), flags=re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split(" #")[0].strip() for line in lines if line.strip()]


def scripts(page: Path) -> list[str]:
    """The page's blocks of Python."""
    return re.findall(r"```python\n(.*?)```", read(page), flags=re.DOTALL)


def links(page: Path) -> list[tuple[Path, str]]:
    """The file and the heading of each link that stays in the repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", read(page))
    inside = [link.partition("#") for link in found if "://" not in link]
    return [((page.parent / file).resolve() if file else page, heading) for file, _, heading in inside]


def headings(page: Path) -> set[str]:
    """The names under which GitHub links a page's headings; a folder or a file of another kind has none."""
    if page.suffix != ".md":
        return set()
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", read(page), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def every_page() -> list[Path]:
    """All pages of the repository."""
    folders = ("docs", "examples", "lwc_fairseq", "lwc_fairseq_compat", "tests")
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).glob("**/*.md"))])
