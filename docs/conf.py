"""Settings of the documentation site, which Sphinx builds from the pages of the repository:

    .venv/bin/sphinx-build -W -c docs . build/site

The pages stay plain Markdown with relative links, as GitHub shows them. This file adds what a site needs beside that:
the tree of pages, the targets of links to folders and to files that are no pages, and the docstrings.
"""

import html
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the docstrings are those of this checkout

import lwc_fairseq  # noqa: E402

project = "lwc_fairseq"
version = release = lwc_fairseq.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.linkcode", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "examples/*.md", "examples/**/*.md", "lwc_fairseq_compat/README.md"]
exclude_patterns = [".*", "build", "dist", "runs", "tests", "lwc_fairseq", "lwc_fairseq.*"]

html_theme = "furo"  # its fonts are the system's: the site needs no network
html_title = f"lwc_fairseq {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_copyright = False
toc_object_entries_show_parents = "hide"
smartquotes_action = "D"  # dashes alone
highlight_language = "text"  # equations are no Python
myst_heading_anchors = 6
autodoc_member_order = "bysource"

TREES = {
    "README": {
        "Use": "own_text models decoding deploying tables extending several_gpus trust troubleshooting",
        "Look up": "api evidence published /examples/fairseq_features architecture gallery",
        "Examples": "/examples/README /examples/results/README",
        "Project": "/CONTRIBUTING /CHANGELOG /lwc_fairseq_compat/README",
    },
    "examples/README": {"": "/examples/*/README /examples/quickstart/grammar/README"},
    "examples/results/README": {"": "/examples/results/*"},
    "examples/benchmark/README": {"": "/examples/benchmark/results/* /examples/benchmark/results/processor_time/*"},
}
"""Which pages stand below a page in the navigation, under a caption. Names without a slash are in docs/."""

MARKED = re.compile(r"(:\w+:)?`([^`]+)`|(?<![\w-])(--[a-z][\w-]*)")
"""A role, code, or an option in a docstring."""

LINKED: set[Path] = set()
"""The folders and files without a page of their own to which a page links; they get one under files/."""


def add_tree(app: Sphinx, page: str, source: list[str]) -> None:
    for caption, names in TREES.get(page, {}).items():
        entries = [name if name.startswith("/") else f"/docs/{name}" for name in names.split()]
        options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
        source[0] += "\n".join(["", "```{toctree}", *options, "", *entries, "```", ""])


def link_to_files(app: Sphinx, doctree: nodes.document) -> None:
    """Lead links to a folder to its README.md, and links to folders and files that are no pages to a page of files/."""
    page = app.env.docname
    for link in list(doctree.findall(nodes.Element)):
        if not isinstance(link, addnodes.download_reference | addnodes.pending_xref) or link.get("refdomain"):
            continue
        path = (ROOT / page).parent.joinpath(link["reftarget"]).resolve()
        if link["reftype"] != "myst" or not path.exists() or path.suffix in (".png", ".svg"):
            continue  # Sphinx copies pictures, and warns about what is missing
        readme = app.env.path2doc(str(path / "README.md"))
        if path.is_dir() and readme in app.env.found_docs:
            link.attributes |= {"refdomain": "doc", "reftarget": readme, "reftargetid": None}
        else:
            address = app.builder.get_relative_uri(page, place(path))
            link.replace_self(nodes.reference("", "", *link.children, refuri=address, internal=True))


def place(path: Path) -> str:
    """Return the name of the page that shows a file or a folder, and note that there must be one."""
    LINKED.add(path)
    return f"files/{path.relative_to(ROOT).as_posix()}"


def pages_of_files(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    for path in sorted(LINKED):
        if path.is_dir():
            names = sorted(one.name for one in path.iterdir() if one.name != "__pycache__")
            items = "".join(f"<li><code>{html.escape(name)}</code></li>" for name in names)
            body = f"<p>This folder of the repository holds:</p><ul>{items}</ul>"
        else:
            language = {".py": "python", ".sh": "bash", ".yaml": "yaml"}.get(path.suffix, "text")
            text = path.read_text(encoding="utf-8")
            body = app.builder.highlighter.highlight_block(text, language, lineanchors="line")
        title = path.relative_to(ROOT).as_posix()
        yield place(path), {"title": title, "body": f"<h1>{html.escape(title)}</h1>{body}"}, "page.html"


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of a documented object in the page of its file, as docs/api.html links it."""
    found = sys.modules[info["module"]]
    for name in info["fullname"].split("."):
        found = getattr(found, name, None)
    found = inspect.unwrap(found) if callable(found) else found
    if not (inspect.isclass(found) or inspect.isfunction(found) or inspect.ismethod(found)):
        return None
    path = Path(inspect.getsourcefile(found))
    if not path.is_relative_to(ROOT / "lwc_fairseq"):
        return None  # inherited from fairseq
    return f"../{place(path)}.html#line-{inspect.getsourcelines(found)[1]}"


def as_restructured_text(app: Sphinx, what: str, name: str, thing: object, options, lines: list[str]) -> None:
    """Mark what docstrings write as Markdown does: `code` in single backticks, indented equations; and options."""
    if what == "attribute":
        lines[0] = f": {lines[0]}"  # napoleon takes what stands before the first colon for a type
    marked: list[str] = []
    for line in lines:
        before = [one for one in marked if one]
        if line.startswith("    ") and marked and not marked[-1] and not before[-1].startswith("    "):
            marked += ["::", ""]
        marked.append(MARKED.sub(lambda found: found[0] if found[1] else f"``{found[2] or found[3]}``", line))
    lines[:] = marked


def copy_start_page(app: Sphinx, error: Exception | None) -> None:
    if not error and app.builder.name == "html":
        shutil.copy(app.outdir / "README.html", app.outdir / "index.html")


def setup(app: Sphinx) -> dict:
    app.connect("source-read", add_tree)
    app.connect("doctree-read", link_to_files, priority=400)  # before Sphinx copies files that are linked
    app.connect("html-collect-pages", pages_of_files)
    app.connect("autodoc-process-docstring", as_restructured_text, priority=400)  # before napoleon
    app.connect("build-finished", copy_start_page)
    return {"parallel_read_safe": False}
