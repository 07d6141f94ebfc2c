"""The end of the quickstart: scores, samples, files and the commands of each step.

    python examples/quickstart/summary.py TEXT MODEL COMMANDS

TEXT is the folder of the corpus, MODEL that of the checkpoint and translations, COMMANDS a file of shell commands.
"""

import json
import sys
from pathlib import Path


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def samples(text: Path, model: Path, number: int) -> list[tuple[str, str, str]]:
    """(source, reference, translation), evenly spread over the test set."""
    rows = list(zip(lines(text / "test.de"), lines(text / "test.en"), lines(model / "test.en"), strict=True))
    return rows[:: len(rows) // number][:number]


def main(text: Path, model: Path, commands: Path) -> None:
    print("\nScores of the test set")
    for score in json.loads((model / "score.json").read_text()):
        print(f"  {score['name']} = {score['score']}   ({score['signature']})")

    print("\nFive of the translations")
    for source, reference, translation in samples(text, model, 5):
        print(f"  German       {source}\n  reference    {reference}\n  translation  {translation}\n")

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
    print("\nTranslate what you type (tokenised, in the words of the demo corpus)")
    bpe = commands.parent / "bpe" / "codes"
    print(
        f"  fairseq-interactive {commands.parent / 'data'} --user-dir lwc_fairseq --task concat_translation "
        f"--path {model / 'checkpoint_best.pt'} --beam 5 --bpe subword_nmt --bpe-codes {bpe}"
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
