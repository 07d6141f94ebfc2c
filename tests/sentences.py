"""A small test set, and translations of it as fairseq-generate prints them."""

REFERENCES = [f"the {a} {b} sees a {c} here" for a in ("old", "new", "big") for b in ("cat", "dog") for c in "xyz"]


def worse(words: str) -> list[str]:
    """The references, with `words` replaced by `none`."""
    return [line.replace(words, "none") for line in REFERENCES]


def generated(hypotheses: list[str]) -> str:
    """The output of fairseq-generate: sentences in the order of batches, with scores and second-best hypotheses."""
    lines = []
    for number in reversed(range(len(hypotheses))):
        lines += [f"S-{number}\tquelle", f"T-{number}\t{REFERENCES[number]}", f"H-{number}\t-0.5\t{hypotheses[number]}"]
        lines += [f"D-{number}\t-0.5\tdetokenised", f"P-{number}\t-0.1 -0.2", f"H-{number}\t-0.9\tsecond best"]
    return "\n".join([*lines, "Generate test with beam=5: BLEU4 = 1.0", ""])
