"""Translate lines of text with an exported model. It needs numpy and onnxruntime, and what `model.json` says of text.

    python FOLDER/translate.py < raw.de > raw.en

Each line of the input becomes a line of the output. From Python: `Model("FOLDER").translate(["Ein Satz ."])`.
"""

import argparse
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

MORE_TOKENS = 4
"""The cache grows by so many tokens at a time."""

UNFINISHED_SHARE = 0.75
"""Finished sentences leave a batch when at most this share of it is unfinished."""

Hypothesis = tuple[float, list[int]]
"""Its score, log P divided by the penalty of its length, and its tokens with the end symbol."""

Array = np.ndarray[Any, Any]


class Model:
    """An exported model.

    Args:
        folder: what `lwc-fairseq export` wrote.
        threads: threads of each operation; by default, one for each core.
        detokenize: whether translations are raw text instead of tokens.
    """

    def __init__(self, folder: str | Path, threads: int = 0, detokenize: bool = False):
        self.folder = Path(folder)
        self.settings = json.loads((self.folder / "model.json").read_text(encoding="utf-8"))
        source, self.words = (
            (self.folder / f"{side}.txt").read_text(encoding="utf-8").split("\n")[:-1] for side in ("source", "target")
        )
        self.numbers = {word: number for number, word in enumerate(source)}
        self.pad, self.end, self.unknown = (self.settings[name] for name in ("pad", "end", "unknown"))
        self.text = Text(self.folder, self.settings["text"], detokenize)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.graphs = {
            path.stem: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            for path in self.folder.glob("*.onnx")
        }
        inputs = [place.name for place in self.graphs["step"].get_inputs()]
        self.caches = [name for name in inputs if name.startswith("cache")]
        self.missing: Counter[str] = Counter()
        """The words of the input that are not in the vocabulary."""

    def translate(
        self, lines: list[str], n_best: int = 1, batch_size: int = 64, **search
    ) -> list[list[tuple[float, str]]]:
        """Return the scores and texts of the `n_best` translations of each line, best first.

        Args:
            batch_size: the number of sentences that are translated at a time.
            search: options of :meth:`search`.
        """
        sources = [self.encode(line) for line in lines]
        translations: list[list[Hypothesis]] = [[(0.0, [self.end])]] * len(lines)
        order = sorted((i for i, source in enumerate(sources) if len(source) > 1), key=lambda i: len(sources[i]))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            for i, hypotheses in zip(batch, self.search([sources[i] for i in batch], **search), strict=True):
                translations[i] = hypotheses
        return [[(score, self.decode(tokens)) for score, tokens in best[:n_best]] for best in translations]

    def encode(self, line: str) -> list[int]:
        """Return the numbers of a line's tokens and the end symbol. A line that is too long loses its last tokens."""
        tokens = self.text.encode(line).split()
        self.missing.update(token for token in tokens if token not in self.numbers)
        longest = self.settings["max_source"] - 1
        if len(tokens) > longest:
            warn(f"a line of {len(tokens)} tokens: the model reads the first {longest}")
        return [*(self.numbers.get(token, self.unknown) for token in tokens[:longest]), self.end]

    def decode(self, tokens: list[int]) -> str:
        words = [self.words[token] for token in tokens if token not in (self.settings["begin"], self.end)]
        return self.text.decode(" ".join(reversed(words) if self.settings["right_to_left"] else words))

    def search(
        self, sources: list[list[int]], beam: int = 5, lenpen: float = 1.0, gnmt_length_penalty: bool | None = None
    ) -> list[list[Hypothesis]]:
        """Return the `beam` best translations of each source, best first.

        Args:
            lenpen: α, the power of the length penalty.
            gnmt_length_penalty: divide log P by ((5 + length) / 6)^α instead of length^α; by default as the model says.
        """
        if beam > self.settings["largest_beam"]:
            raise ValueError(f"a beam of {beam}: this model can have {self.settings['largest_beam']}")
        gnmt = self.settings["gnmt_length_penalty"] if gnmt_length_penalty is None else gnmt_length_penalty

        def score(log_probability: float, tokens: list[int]) -> float:
            return log_probability / ((5 + len(tokens)) / 6 if gnmt else len(tokens)) ** lenpen

        finished = self.beams(sources, beam)
        scored = [[(score(log_p, tokens), tokens) for log_p, tokens in hypotheses] for hypotheses in finished]
        return [sorted(hypotheses, key=lambda hypothesis: -hypothesis[0]) for hypotheses in scored]

    def beams(self, sources: list[list[int]], beam: int) -> list[list[Hypothesis]]:
        """Return the first `beam` hypotheses of each sentence that end, with log P as their score. It is the search of
        fairseq.

        `given` holds the inputs of the graph `step`, which README.md describes. A decoder has either one state for each
        hypothesis or a cache of keys and values. In step t, the cache has those of the first t tokens, and `slots` says
        which hypothesis wrote each token that a hypothesis continues.
        """
        source: Array = np.full((len(sources), max(map(len, sources))), self.pad)
        for row, tokens_of_row in zip(source, sources, strict=True):
            row[: len(tokens_of_row)] = tokens_of_row
        given = {"source": source} | self.run("encoder", {"source": source})
        if "reverse" in self.graphs:
            given |= self.reverse_translations(given)
        if "state" in given:
            given["state"] = np.repeat(given["state"][:, None], beam, axis=1)
        finished: list[list[Hypothesis]] = [[] for _ in sources]
        sentences: Array = np.arange(len(sources))
        tokens: Array = np.zeros((len(sources), beam, 0), np.int64)
        slots: Array = tokens
        given["tokens"] = np.full((len(sources), beam), self.end)
        totals: Array = np.zeros((len(sources), beam), np.float32)
        totals[:, 1:] = -np.inf  # all hypotheses are equal before the first step
        max_len = min(200, self.settings["max_target"] - 1)
        for t in range(max_len + 1):
            given["length"], here = np.array(t), slice(t * beam, (t + 1) * beam)
            if self.caches:
                self.reserve(given, here.start, MORE_TOKENS * beam)
                given["visible"] = np.zeros((*totals.shape, given[self.caches[0]].shape[2]), bool)
                given["visible"][..., : here.start] = (slots[..., None] == np.arange(beam)).reshape(*totals.shape, -1)
            out = self.run("step", given)
            for name in self.caches:
                given[name][:, :, here] = out[name.replace("cache", "new")]
            if "state" in given:
                given["state"] = out["new_state"]
            scores, types = out["scores"], out["types"]
            scores[types == self.pad] = -np.inf
            if t == 0:
                scores[types == self.end] = -np.inf  # a translation has a word
            if t == max_len:
                scores, types = out["ends"][..., None], np.full((len(sentences), beam, 1), self.end)
            flat = (scores + totals[..., None]).reshape(len(sentences), -1)
            best = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * beam]
            totals = np.take_along_axis(flat, best, 1)
            last = np.take_along_axis(types.reshape(len(sentences), -1), best, 1)
            parents = best // scores.shape[2]
            is_end = (last == self.end) & (totals > -np.inf)
            for i, j in np.argwhere(is_end[:, :beam]):
                hypotheses = finished[sentences[i]]
                if len(hypotheses) < beam:
                    hypotheses.append((float(totals[i, j]), [*tokens[i, parents[i, j]].tolist(), self.end]))
            rest = [i for i, sentence in enumerate(sentences) if len(finished[sentence]) < beam]
            if t == max_len or not rest:
                break
            if len(rest) <= UNFINISHED_SHARE * len(sentences):
                given = {name: part[rest] for name, part in given.items() if name != "length"}
                kept = (sentences, is_end, totals, last, parents, tokens, slots)
                sentences, is_end, totals, last, parents, tokens, slots = (x[rest] for x in kept)
            chosen = np.argsort(is_end, axis=1, kind="stable")[:, :beam]  # end symbols come last
            totals, last, parents = (np.take_along_axis(x, chosen, 1) for x in (totals, last, parents))
            given["tokens"] = last
            if "state" in given:
                given["state"] = np.take_along_axis(given["state"], parents[..., None], 1)
            tokens = np.append(np.take_along_axis(tokens, parents[..., None], 1), last[..., None], axis=2)
            slots = np.append(np.take_along_axis(slots, parents[..., None], 1), parents[..., None], axis=2)
        return finished

    def run(self, graph: str, given: dict[str, Array]) -> dict[str, Array]:
        """Return the outputs of a graph by name."""
        session = self.graphs[graph]
        inputs = {place.name: given[place.name] for place in session.get_inputs()}
        return dict(zip((place.name for place in session.get_outputs()), session.run(None, inputs), strict=True))

    def reserve(self, given: dict[str, Array], slots: int, more: int) -> None:
        """Give each cache that has no more than `slots` slots `more` of them. Apart from its slots, a cache has the
        shape of the memory of its layer."""
        for name in self.caches:
            cache = given.get(name, given[name.replace("cache", "memory")][:, :, :0])
            if cache.shape[2] == slots:
                new = np.zeros((*cache.shape[:2], more, cache.shape[3]), np.float32)
                given[name] = np.concatenate([cache, new], axis=2)

    def reverse_translations(self, given: dict[str, Array]) -> dict[str, Array]:
        """Search greedily for translations from right to left, and return what the step of the forward decoder reads of
        them."""
        source, given = given["source"], dict(given)
        factor, more = self.settings["longest_reverse"]
        lengths = (source != self.pad).sum(1).astype(np.float32)  # the model computes in this precision, too
        limits = np.maximum(1, (np.float32(factor) * lengths + np.float32(more)).astype(int))
        given["tokens"] = np.full((len(source), 1), self.end)
        if "reverse_state" in given:
            given["state"] = given["reverse_state"][:, None]
        ended = unread = np.zeros(len(source), bool)
        read, columns, visible = [], [], []
        for t in count():
            if self.caches:
                limits, given["length"] = np.minimum(limits, self.settings["max_target"] - 1), np.array(t)
                self.reserve(given, t, MORE_TOKENS)
                is_earlier = np.arange(given[self.caches[0]].shape[2]) < t
                given["visible"] = np.tile(is_earlier, (len(source), 1, 1))
            out = self.run("reverse", given)
            for name in self.caches:
                given[name][:, :, t : t + 1] = out[name.replace("cache", "new")]
            read.append(given["tokens"])
            columns.append(out)
            visible.append(~unread)
            given["tokens"] = np.where((limits == t + 1)[:, None], self.end, out["types"])
            if "state" in given:
                given["state"] = out["new_state"]
            # A cache also has the keys and values of the end symbol, but a state precedes the token that it writes.
            unread = ended if self.caches else ended | (given["tokens"][:, 0] == self.end)
            ended = ended | (given["tokens"][:, 0] == self.end)
            if unread.all():
                break
        is_read = np.stack(visible, axis=1)
        if self.caches:  # the target reads the backward translation as it reads the source
            tokens = np.where(is_read, np.concatenate(read, axis=1), self.pad)
            longer = {"source": np.append(source, tokens, axis=1)}
            for name in self.caches:
                memory = name.replace("cache", "memory")
                longer[memory] = np.append(given[memory], given[name][:, :, : t + 1], axis=2)
            return longer
        names = [name for name in columns[0] if name.startswith("reverse")]
        return {name: np.concatenate([out[name] for out in columns], axis=1) for name in names} | {
            "reverse_visible": is_read
        }


class Text:
    """Converts lines to tokens, and tokens to lines, as the recipe of the training data did.

    Args:
        settings: the keys of `text.yaml`, as far as they are given.
        detokenize: whether `decode` also undoes tokenization and truecasing.
    """

    def __init__(self, folder: Path, settings: dict, detokenize: bool):
        self.settings = settings
        source, target = (settings.get(side) for side in ("source", "target"))
        self.before: list[Callable[[str], str]] = []
        self.after: list[Callable[[str], str]] = []
        if settings.get("normalize"):
            from sacremoses import MosesPunctNormalizer

            self.before.append(MosesPunctNormalizer(source).normalize)
        if settings.get("tokenize"):
            from sacremoses import MosesTokenizer

            tokenize, hyphens = MosesTokenizer(source).tokenize, settings.get("split_hyphens", False)
            self.before.append(lambda line: tokenize(line, hyphens, return_str=True))
        if settings.get("case") == "truecase":
            from sacremoses import MosesTruecaser

            truecase = MosesTruecaser(str(folder / settings["case_model"])).truecase
            self.before.append(lambda line: truecase(line, return_str=True))
        if settings.get("case") == "lower":
            self.before.append(str.lower)
        codes = folder / settings["codes"] if settings.get("codes") else None
        if settings.get("bpe") == "subword_nmt":
            from subword_nmt.apply_bpe import BPE

            assert codes is not None
            with codes.open(encoding="utf-8-sig") as file:
                self.before.append(BPE(file).process_line)
        self.pieces = None
        if settings.get("bpe") == "sentencepiece":
            from sentencepiece import SentencePieceProcessor

            pieces = self.pieces = SentencePieceProcessor(model_file=str(codes))
            self.before.append(lambda line: " ".join(pieces.encode(line, out_type=str)))
        if detokenize and settings.get("case") == "truecase":
            from sacremoses import MosesDetruecaser

            detruecase = MosesDetruecaser().detruecase
            self.after.append(lambda text: detruecase(text, return_str=True))
        if detokenize and settings.get("tokenize_target", settings.get("tokenize")):
            from sacremoses import MosesDetokenizer

            join = MosesDetokenizer(target).detokenize
            self.after.append(lambda text: join(text.split()))

    def encode(self, line: str) -> str:
        """Return the tokens of a line, separated by spaces."""
        for change in self.before:
            line = change(line)
        return line

    def decode(self, text: str) -> str:
        """Convert the tokens of a translation, separated by spaces, to text."""
        if self.pieces:
            text = text.replace(" ", "").replace("▁", " ").strip()
        elif self.settings.get("bpe"):
            text = f"{text} ".replace("@@ ", "").strip()
        for change in self.after:
            text = change(text)
        return text


def warn(what: str) -> None:
    print(f"translate: warning: {what}", file=sys.stderr)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Translate the lines of standard input.")
    parser.add_argument("--beam", type=positive, default=5, help="hypotheses that the search follows (default: 5)")
    parser.add_argument("--lenpen", type=float, default=1.0, help="power of the length penalty (default: 1)")
    parser.add_argument(
        "--gnmt-length-penalty", action="store_true", default=None, help="the length penalty of Wu et al., 2016"
    )
    parser.add_argument("--n-best", type=positive, default=1, metavar="N", help="lines for each line (default: 1)")
    parser.add_argument("--scores", action="store_true", help="write the score and a tab before each translation")
    parser.add_argument(
        "--batch-size", type=positive, default=64, metavar="N", help="sentences at a time (default: 64)"
    )
    parser.add_argument("--threads", type=positive, default=0, metavar="N", help="threads (default: one for each core)")
    parser.add_argument("--detokenize", action="store_true", help="write raw text instead of tokens")
    args = parser.parse_args()
    if args.n_best > args.beam:
        parser.error(f"--n-best {args.n_best} is more than --beam {args.beam}: raise the beam")
    if not abs(args.lenpen) <= 50:
        parser.error(f"--lenpen {args.lenpen}: give a number from -50 to 50")
    return args


def main() -> None:
    args = arguments()
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 (None if it is closed)
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8-sig" if stream is sys.stdin else "utf-8", errors="replace")
    model = Model(Path(__file__).parent, args.threads, args.detokenize)
    if args.beam > model.settings["largest_beam"]:
        sys.exit(f"translate: error: --beam {args.beam}: this model can have {model.settings['largest_beam']}")
    if args.detokenize and not model.settings["text"]:
        sys.exit("translate: error: --detokenize: the data had no text.yaml, which says how: leave the option out")
    search = {"beam": args.beam, "lenpen": args.lenpen, "gnmt_length_penalty": args.gnmt_length_penalty}
    size = 1 if sys.stdin.isatty() else 1024  # lines that are read before they are translated
    while lines := [line.removesuffix("\n") for line in islice(sys.stdin, size)]:
        for translations in model.translate(lines, args.n_best, args.batch_size, **search):
            # An empty line has one translation, and N lines all the same.
            for score, text in (*translations, *translations[-1:] * (args.n_best - len(translations))):
                print(f"{score:.4f}\t{text}" if args.scores else text)
        sys.stdout.flush()
    if model.missing:
        words = " ".join(word for word, _ in model.missing.most_common(5))
        total = model.missing.total()
        warn(f"{total} token{' is' if total == 1 else 's are'} not in the vocabulary, most often: {words}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
