"""Print the end of the quickstart: scores, some translations, the files, and the commands of each step.

    python examples/quickstart/summary.py TEXT MODEL COMMANDS

TEXT is the folder of the corpus, MODEL the folder of the checkpoint and the translations, COMMANDS a file with one
shell command a line, in the output folder of the quickstart.
"""

import argparse
import json
import shlex
from pathlib import Path


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def samples(text: Path, model: Path, number: int) -> list[tuple[str, ...]]:
    """Some sources, references and translations, evenly spread over the test set."""
    sides = (lines(path) for path in (text / "test.de", text / "test.en", model / "test.en"))
    rows = list(zip(*sides, strict=True))
    return rows[:: len(rows) // number][:number]


def print_summary(text: Path, model: Path, commands: Path) -> None:
    print("\nScores of the test set")
    for score in json.loads((model / "score.json").read_text()):
        print(f"  {score['name']} = {score['score']}   ({score['signature']})")

    print("\nFive of the translations")
    for source, reference, translation in samples(text, model, 5):
        print(f"  German       {source}")
        print(f"  reference    {reference}")
        print(f"  translation  {translation}\n")

    print("Files")
    for what, path in (
        ("corpus with word alignments", text),
        ("checkpoint", model / "checkpoint_best.pt"),
        ("translations", model / "test.en"),
        ("the same with scores", model / "generated.txt"),
        ("all that, as one page", commands.parent / "report.html"),
    ):
        print(f"  {what:28} {path}")

    print("\nThe same by hand, in the repository's root, after: source .venv/bin/activate")
    for command in lines(commands):
        print(f"  {command}")
    print("\nTranslate what you type, in the words of the demo corpus")
    print(f"  lwc-fairseq translate {shlex.quote(str(model / 'checkpoint_best.pt'))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("text", "model", "commands"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    args = parser.parse_args()
    print_summary(args.text, args.model, args.commands)


if __name__ == "__main__":
    main()
