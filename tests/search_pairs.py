"""Runs fairseq-generate or fairseq-interactive with each pair of search options, all in this process.

    python tests/search_pairs.py generate DATA --path CHECKPOINT … EVERY

It prints a line for each pair that is refused, with its message, and a traceback for each pair that fails otherwise. It
tries each EVERY-th pair. The status is 1 if a pair has failed.
"""

import contextlib
import copy
import functools
import importlib
import io
import sys
import traceback
from collections import Counter
from itertools import combinations

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import open_dict

from lwc_fairseq_compat.errors import is_for_user

CHOICES = (
    *("--beam 1", "--beam 4", "--beam 100", "--nbest 1", "--nbest 5", "--max-len-a 0.5", "--max-len-a 100"),
    *("--max-len-b 0", "--max-len-b 1", "--max-len-a 1 --max-len-b 0 --min-len 3", "--min-len 0", "--min-len 2000"),
    *("--match-source-len", "--unnormalized", "--lenpen=-2", "--lenpen 50", "--lenpen nan", "--unkpen 1e6"),
    *("--unkpen=-1e6", "--unkpen inf", "--score-reference", "--prefix-size 2", "--prefix-size 1000", "--sacrebleu"),
    *("--no-repeat-ngram-size 1", "--no-repeat-ngram-size 2", "--sampling --nbest 5", "--sampling-topk 3"),
    *("--sampling --nbest 5 --sampling-topk 1", "--sampling --nbest 5 --sampling-topp 1e-9", "--constraints"),
    *("--sampling --nbest 5 --sampling-topp 0.5", "--constraints unordered", "--temperature 1e-4", "--temperature 1e4"),
    *("--diverse-beam-groups 1", "--diverse-beam-groups 5", "--diverse-beam-groups 5 --diverse-beam-strength 1e6"),
    *("--diversity-rate 0", "--diversity-rate 1e6", "--print-alignment", "--print-alignment soft", "--lm-weight 0.5"),
    *("--retain-dropout", "--post-process letter", "--post-process subword_nmt", "--replace-unk", "--print-step"),
    *("--scoring sacrebleu", "--scoring chrf", "--quiet", "--gnmt-length-penalty", "--stock-search", "--print-reverse"),
    *("--reverse-target", "--iter-decode-with-beam 3", "--batch-size 1", "--batch-size 3", "--max-tokens 30"),
    *("--skip-invalid-size-inputs-valid-test", "--max-source-positions 2", "--seed 3", "--num-shards 3"),
)
TEXT = "ba de\tGO\n\nfi\tBA DE\tGA\nga ge gi go ba\t\nnever\tseen\n"


def pairs():
    """Return the words of each pair of choices that have no option in common."""
    choices = [choice.replace("=", " =").split() for choice in CHOICES]
    return [
        " ".join(one + other).replace(" =", "=").split()
        for one, other in combinations(choices, 2)
        if not flags(one) & flags(other)
    ]


def flags(words):
    return {word for word in words if word.startswith("--")}


def attempt(module, parser, base, words):
    """Run a command in this process. Return how it ends ("works", "refused" or "failed"), and the message."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(TEXT.encode()), encoding="utf-8")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            module.main(configuration(parser, options.parse_args_and_arch(parser(), [*base, *words])))
    except SystemExit:
        return "refused", printed.getvalue().strip().splitlines()[-1]
    except Exception as error:
        return ("refused", str(error)) if is_for_user(error) else ("failed", traceback.format_exc())
    translated = {line.split("\t")[0] for line in printed.getvalue().splitlines() if line.startswith("H-")}
    if parser is options.get_interactive_generation_parser and len(translated) != TEXT.count("\n"):
        return "failed", f"lines are lost: {printed.getvalue()}"
    return "works", ""


@functools.cache
def defaults(parser, scoring):
    """Return a configuration for a way of scoring. A command converts all its options each time, which is slow."""
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser(), ["data", "--scoring", scoring]))


def configuration(parser, args):
    """Return the configuration of parsed options."""
    cfg = copy.deepcopy(defaults(parser, args.scoring))
    for part in (cfg.common, cfg.common_eval, cfg.generation, cfg.dataset, cfg.interactive, cfg.distributed_training):
        for name in part:
            if name != "_name" and hasattr(args, name):
                part[name] = getattr(args, name)
    with open_dict(cfg):
        cfg.task = vars(args)  # the task takes its options from these
    return cfg


def main():
    command, *base, every = sys.argv[1:]
    sys.argv = [f"fairseq-{command}"]  # only commands of fairseq refuse options
    module = importlib.import_module(f"fairseq_cli.{command}")
    parser = options.get_interactive_generation_parser if command == "interactive" else options.get_generation_parser
    torch.set_num_threads(1)
    ends = Counter()
    for words in pairs()[:: int(every)]:
        end, message = attempt(module, parser, tuple(base), words)
        ends[end] += 1
        if end != "works":
            print(f"{end}: {' '.join(words)}: {message}", flush=True)
    print(dict(ends))
    sys.exit(ends["failed"] > 0)


if __name__ == "__main__":
    main()
