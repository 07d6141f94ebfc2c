"""Learn a sentencepiece model, or split text with it.

python examples/pieces.py learn MODEL SIZE FILE ...      writes MODEL: BPE with SIZE pieces of the text of all files
python examples/pieces.py apply MODEL < text > pieces    one line for each line
"""

import sys
from pathlib import Path

try:
    import sentencepiece
except ImportError:
    sys.exit("pieces.py: sentencepiece is not installed: pip install sentencepiece")


def learn(model: str, size: str, *files: str) -> None:
    prefix = model.removesuffix(".model")
    sentencepiece.SentencePieceTrainer.train(
        input=list(files),  # a text would be split at its commas
        model_prefix=prefix,
        vocab_size=int(size),
        model_type="bpe",
        character_coverage=1.0,
        hard_vocab_limit=False,  # a small text has fewer pieces
        minloglevel=1,
    )
    Path(f"{prefix}.vocab").unlink()  # fairseq has its own


def apply(model: str) -> None:
    sys.stdout.reconfigure(encoding="utf-8")
    encoder = sentencepiece.SentencePieceProcessor(model_file=model)
    for line in sys.stdin.buffer:
        print(" ".join(encoder.encode(line.decode("utf-8").rstrip("\n"), out_type=str)))


COMMANDS = {"learn": learn, "apply": apply}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        print(__doc__)
    elif len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: {__doc__}")
    else:
        COMMANDS[sys.argv[1]](*sys.argv[2:])
