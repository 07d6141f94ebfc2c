"""Writing files."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a text file that is there as a whole or not at all."""
    making = path.with_name(path.name + ".making")
    making.write_text(text, encoding="utf-8")
    os.replace(making, path)
