"""The translations of a test set, the files that contain them, their scores, and significance tests.

BLEU, chrF, TER and the tests are those of sacrebleu. COMET is a learned metric, for which the package `unbabel-comet`
is needed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from statistics import mean

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest, Result

from lwc_fairseq_compat import UserError

from ..files import read_lines


@dataclass(frozen=True)
class SignificanceTest:
    """A paired test of sacrebleu."""

    code: str  # sacrebleu's name for it
    method: str
    trials: int
    sides: str

    @property
    def title(self) -> str:
        return f"{self.sides}, by sacrebleu's {self.method} of BLEU, {self.trials:,} trials"


RANDOMIZATION = "randomization"
TESTS = {
    RANDOMIZATION: SignificanceTest("ar", "approximate randomization", 10_000, "two-sided"),
    "bootstrap": SignificanceTest("bs", "paired bootstrap resampling", 1_000, "one-sided"),
}
"""The choices of a table's key `significance`."""

COMET_MODEL = "Unbabel/wmt22-comet-da"
INSTALL_COMET = "pip install '.[comet]' && pip install --no-deps unbabel-comet"
"""The extra `comet` lists what `unbabel-comet` needs, because its own requirements exclude NumPy 2."""

Tagged = tuple[list[str], list[str]]
"""The lines of a text, and lines with a tag for each word."""


@dataclass(frozen=True)
class Translations:
    """The translations, references and sources of a test set, in its order."""

    hypotheses: list[str]
    references: list[list[str]]  # one list per set of references
    source: list[str] | None = None


def read_generated(path: Path) -> Translations:
    """Read the source (S-), the best hypothesis (H-) and the reference (T-) of each sentence from the output of
    fairseq-generate. Raises UserError if the output is not complete, or a sentence before the last one is missing."""
    kinds: dict[str, dict[int, str]] = {"S": {}, "H": {}, "T": {}}
    line = ""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if match := re.match(r"([SHT])-(\d+)\t(?:.*\t)?(.*)", line):  # after the score, if there is one
                kinds[match[1]].setdefault(int(match[2]), match[3])
    source, hypotheses, references = kinds.values()
    whole = line.startswith("Generate ") and source.keys() == hypotheses.keys() == references.keys()
    if not whole or not hypotheses:
        raise UserError(f"{path}: not the whole output of fairseq-generate; remove it and run the row again")
    missing = max(hypotheses) + 1 - len(hypotheses)
    if missing:
        raise UserError(
            f"{path}: {missing} of the sentences 0 to {max(hypotheses)} are missing: translate the whole set, without "
            "--skip-invalid-size-inputs-valid-test"
        )
    ordered = [[lines[number] for number in sorted(lines)] for lines in (hypotheses, references, source)]
    return Translations(ordered[0], [ordered[1]], ordered[2])


def read_hypotheses(path: Path) -> list[str]:
    """Read translations from a text file, one per line, or from the output of fairseq-generate or fairseq-interactive.
    Raises UserError if the file cannot be read, or is empty."""
    lines = read_lines(path)
    best = scored(lines)
    return [best[number][1] for number in sorted(best)] or lines


def scored(lines: Iterable[str]) -> dict[int, tuple[float, str]]:
    """Return the score and the text of the first hypothesis of each sentence, by its number, in the output of
    fairseq-generate or fairseq-interactive."""
    best: dict[int, tuple[float, str]] = {}
    for line in lines:
        if match := re.match(r"H-(\d+)\t(-?[\d.]+(?:e[-+]?\d+)?|-?inf|nan)\t(.*)", line):
            best.setdefault(int(match[1]), (float(match[2]), match[3]))
    return best


def joined(parts: Sequence[Translations]) -> Translations:
    """Return the translations of several sets as those of one. All have the same number of references."""
    sources = [part.source for part in parts if part.source is not None]
    return Translations(
        list(chain(*(part.hypotheses for part in parts))),
        [list(chain(*lines)) for lines in zip(*(part.references for part in parts), strict=True)],
        list(chain(*sources)) if len(sources) == len(parts) else None,
    )


def with_references(translations: Translations, references: list[list[str]]) -> Translations:
    """Return the same hypotheses with other references. Raises UserError if these have a different number of lines."""
    for reference in references:
        if len(reference) != len(translations.hypotheses):
            raise UserError(
                f"--references: {len(reference)} lines for {len(translations.hypotheses)} translated sentences: give "
                "files that match the test set line by line"
            )
    return Translations(translations.hypotheses, references)


@dataclass
class Score:
    """sacrebleu's options, and which text it reads. The papers' data are tokenised, so sacrebleu does not tokenise by
    default."""

    tokenize: str = "none"
    lowercase: bool = False
    detokenize: bool = False  # whether translations become raw text first, which needs raw references


def bleu(options: Score) -> BLEU:
    """Return sacrebleu's BLEU metric. Raises UserError if sacrebleu has no such tokenizer, or the tokenizer needs a
    package or a file that is not there."""
    if options.tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"score: tokenize: {options.tokenize}: sacrebleu has {', '.join(BLEU.TOKENIZERS)}")
    try:
        return BLEU(tokenize=options.tokenize, lowercase=options.lowercase, force=True)
    except (RuntimeError, ImportError, OSError) as error:
        raise UserError(f"score: tokenize: {options.tokenize}: {' '.join(str(error).split())}") from error


def score(translations: Translations, options: Score) -> dict:
    """Return BLEU and chrF2, their signatures, and the number of translated words divided by the number of reference
    words."""
    metric, chrf = bleu(options), CHRF()
    result = metric.corpus_score(translations.hypotheses, translations.references)
    return {
        "bleu": round(result.score, 2),
        "signature": str(metric.get_signature()),
        "chrf": round(chrf.corpus_score(translations.hypotheses, translations.references).score, 2),
        "chrf_signature": str(chrf.get_signature()),
        "length_ratio": round(result.ratio, 3),
    }


def significance(
    baseline: list[Translations], system: list[Translations], options: Score, test: str = RANDOMIZATION
) -> float:
    """Return p of one of sacrebleu's paired tests on BLEU. It is the same whichever system is the baseline.

    "randomization": a trial exchanges the translations of the two systems, with probability 1/2 for each sentence of
    each seed. p is the share of trials whose difference, of either sign, exceeds the real one: it is two-sided.
    sacrebleu leaves out the trials whose difference equals the real one. Among them are those that exchange all of the
    k pairs of translations whose n-grams or lengths differ, or none of these pairs. So 2 / 2^k is added here.

    "bootstrap": a trial draws as many sentences as there are, with replacement (Koehn, *Statistical Significance Tests
    for Machine Translation Evaluation*, EMNLP 2004). p is the share of trials whose difference exceeds the mean of all
    trials by more than the real difference, as in Moses' script. It counts only one tail of the trials, and so is
    one-sided: about half of the other test's p.

    BLEU is that of the sentences of all seeds together, as in Clark et al., *Better Hypothesis Testing for Statistical
    Machine Translation: Controlling for Optimizer Instability*, ACL 2011. A sentence counts once for each seed, as if
    its translations were independent, so p is somewhat too small with several seeds.

    Args:
        baseline, system: the translations of each seed, in the same order of seeds.
        test: a key of `TESTS`.
    """
    chosen = TESTS[test]
    first, second = joined(baseline), joined(system)
    systems: list[tuple[str, Sequence[str]]]
    systems = [("baseline", first.hypotheses), ("system", second.hypotheses)]
    _, scores = PairedTest(systems, {"BLEU": bleu(options)}, first.references, chosen.code, chosen.trials)()
    baseline_bleu, system_bleu = scores["BLEU"]
    assert isinstance(baseline_bleu, Result) and isinstance(system_bleu, Result) and system_bleu.p_value is not None
    if baseline_bleu.score == system_bleu.score:
        return 1.0  # sacrebleu's p would be small if no trial's difference exceeds 0
    if test != RANDOMIZATION:
        return system_bleu.p_value
    metric = bleu(options)

    def counts(line: str, references: Iterable[str]) -> tuple:
        result = metric.corpus_score([line], [[reference] for reference in references])
        return result.counts, result.totals, result.sys_len, result.ref_len

    pairs = zip(first.hypotheses, second.hypotheses, zip(*first.references, strict=True), strict=True)
    different = (1 for one, other, texts in pairs if one != other and counts(one, texts) != counts(other, texts))
    return min(1.0, system_bleu.p_value + 2.0 ** (1 - sum(islice(different, 60))))  # beyond, nothing is added


def part_of_speech_bleu(
    tags: Sequence[str], systems: dict[str, Tagged], references: Sequence[Tagged], lowercase: bool = False
) -> dict[str, list[float]]:
    """Compute BLEU-1 to BLEU-4 of each system from only the words whose tags begin with one of `tags`, as NNS begins
    with NN (Zhang, Xiong, Su, 2018, Table 3).

    BLEU is not smoothed: as in the paper, it is 0 if no n-gram matches.

    Raises UserError if a line does not have as many tags as words.
    """
    chosen = {name: words_tagged(tags, name, *tagged) for name, tagged in systems.items()}
    expected = [words_tagged(tags, f"reference {i}", *tagged) for i, tagged in enumerate(references, 1)]
    metrics = [
        BLEU(lowercase, tokenize="none", force=True, smooth_method="none", max_ngram_order=n) for n in (1, 2, 3, 4)
    ]
    return {
        name: [round(metric.corpus_score(lines, expected).score, 2) for metric in metrics]
        for name, lines in chosen.items()
    }


def words_tagged(tags: Sequence[str], name: str, lines: list[str], tagged: list[str]) -> list[str]:
    """Return the words of each line whose tags begin with one of `tags`. Error messages contain `name`."""
    if len(lines) != len(tagged):
        raise UserError(f"{name}: {len(lines)} lines, but {len(tagged)} lines of tags")
    chosen = []
    for number, (line, tags_of_line) in enumerate(zip(lines, tagged, strict=True), 1):
        words, of_words = line.split(), tags_of_line.split()
        if len(words) != len(of_words):
            raise UserError(f"{name}, line {number}: {len(words)} words, but {len(of_words)} tags")
        chosen.append(" ".join(word for word, tag in zip(words, of_words, strict=True) if tag.startswith(tuple(tags))))
    return chosen


def comet_scores(
    model: str, systems: dict[str, list[str]], source: list[str], reference: list[str]
) -> tuple[dict[str, float], str]:
    """Return the mean COMET of each system, where higher is better, and its signature.

    Args:
        model: the name of a model, which COMET downloads, or the path of a model's checkpoint.

    Raises UserError if COMET is not installed, or cannot load the model.
    """
    try:
        import comet

        release = version("unbabel-comet")
    except ImportError as error:  # there is no such module, or it is of another distribution
        raise UserError(f"--comet: {error}; install COMET with: {INSTALL_COMET}") from error
    import torch  # which nothing else here needs

    try:
        path = model if Path(model).exists() else comet.download_model(model)
    except KeyError as error:
        raise UserError(
            f"--comet-model {model}: there is no such file, and COMET cannot download a model of that name "
            "here: download it where there is a network, and give the path of its checkpoints/model.ckpt"
        ) from error
    try:
        network = comet.load_from_checkpoint(str(path))
    except Exception as error:  # COMET itself raises Exception, and what it is built on, errors of many kinds
        reason, *_ = str(error).split("\n")
        raise UserError(f"--comet-model {model}: COMET cannot load it: {reason}") from error
    samples = [
        {"src": src, "ref": ref, "mt": hypothesis}
        for hypotheses in systems.values()
        for src, ref, hypothesis in zip(source, reference, hypotheses, strict=True)
    ]
    scores = iter(network.predict(samples, gpus=int(torch.cuda.is_available())).scores)
    means = {name: round(mean(next(scores) for _ in lines), 4) for name, lines in systems.items()}
    return means, f"{model}, unbabel-comet {release}, first reference"
