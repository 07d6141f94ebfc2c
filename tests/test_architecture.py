"""The packages as a whole: what imports what."""

import ast
import re
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

from conftest import ROOT

ARROWS = {
    "cli": {"experiments", "export"},
    "export": {"search"},
    "experiments": {"analysis"},
    "analysis": {"models"},
    "models": {"modules"},
    "criterions": {"models"},
    "modules": {"data"},
    "tasks": {"search"},
    "search": {"models"},
    "data": set(),
}
"""Which folder of lwc_fairseq imports which. A folder may import whatever its arrows lead to, at any distance."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {
    name_of(path): path
    for package in ("lwc_fairseq", "lwc_fairseq_compat")
    for path in (ROOT / package).rglob("*.py")
    if "build" not in path.parts  # which pip leaves in the folder of a project that it installs
}


def imports(name: str) -> set[str]:
    """The modules of both packages that a module imports, at its top or in a function."""
    package = name if FILES[name].stem == "__init__" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else source for name in names}
    return found & FILES.keys()


GRAPH = {name: imports(name) for name in FILES}


def folder_of(name: str) -> str | None:
    """The folder of lwc_fairseq that a module is in. None for a module beside these folders, or of another package."""
    package, _, rest = name.partition(".")
    folder = rest.partition(".")[0]
    return folder if package == "lwc_fairseq" and folder and (ROOT / package / folder).is_dir() else None


def reachable(folder: str) -> set[str]:
    return {folder}.union(*(reachable(other) for other in ARROWS[folder]))


def test_imports_have_no_cycle():
    TopologicalSorter(GRAPH).prepare()  # raises CycleError, which names the cycle


def test_imports_point_the_declared_way():
    wrong = [
        f"{name} imports {imported}"
        for name in GRAPH
        for imported in GRAPH[name]
        if folder_of(name) and folder_of(imported) and folder_of(imported) not in reachable(folder_of(name))
    ]
    assert not wrong


def test_what_all_folders_share_imports_none_of_them():
    shared = [name for name in GRAPH if folder_of(name) is None and name != "lwc_fairseq"]
    assert not [name for name in shared for imported in GRAPH[name] if folder_of(imported)]


def test_the_compatibility_package_does_not_mention_the_plugin():
    """The text of the files is searched, which finds imports and names."""
    folder = ROOT / "lwc_fairseq_compat"
    compat = [path for name, path in FILES.items() if name.startswith("lwc_fairseq_compat")]
    compat += [folder / "README.md", folder / "pyproject.toml"]
    assert not [path.name for path in compat if re.search(r"lwc[-_ ]fairseq(?!_compat)", path.read_text())]
