"""Python environments without some packages, made of links to the packages that are installed here."""

import os
import sys
import sysconfig
import venv
from importlib.metadata import distributions
from pathlib import Path

SITE = Path(sysconfig.get_path("purelib"))


def environment_without(folder: Path, *names: str) -> dict[str, str]:
    """Make a virtual environment in `folder` with all distributions that are installed here except the named ones.

    Returns:
        The environment variables under which `fairseq-train`, `python` and so on are those of the new environment.
    """
    venv.create(folder, symlinks=True)
    missing = {file.parts[0] for name in names for file in files_of(name)}
    for path in SITE.iterdir():
        if path.name not in missing:
            (packages_of(folder) / path.name).symlink_to(path)
    missing_commands = {file.name for name in names for file in files_of(name)}
    for script in Path(sys.executable).parent.iterdir():
        if script.name not in missing_commands and (code := script_code(script)):
            command = folder / "bin" / script.name
            command.write_text(f"#!/usr/bin/env python\n{code}")
            command.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}


def packages_of(folder: Path) -> Path:
    """The folder of packages in a virtual environment."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))


def files_of(name: str) -> list[Path]:
    """The files of an installed distribution, relative to the folder of packages."""
    (found,) = distributions(name=name, path=[str(SITE)])
    return [Path(file) for file in found.files]


def script_code(path: Path) -> str | None:
    """The text below the first line of a Python script, or None if the file is not one."""
    first, _, code = path.read_bytes().partition(b"\n")
    return code.decode() if first.startswith(b"#!") and b"python" in first else None
