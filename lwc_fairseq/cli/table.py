"""`lwc-fairseq table`, which trains, translates and scores the rows of a table, and `report`, its HTML page."""

import argparse
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Mapping
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

from lwc_fairseq_compat import UserError

from ..files import absolute, import_plugins, make_folder, make_place, read_lines
from .arguments import add_first, add_user_dir, check_first, positive

if TYPE_CHECKING:
    from ..analysis.tagger import Tagger
    from ..experiments.cluster import ClusterRunner
    from ..experiments.jobs import Job, Settings
    from ..experiments.schedule import Runner


def add_table(commands) -> None:
    table = commands.add_parser(
        "table",
        help="train, translate and score every row of a table",
        description="Train every row of a table file, translate the test set, score the translations, and write "
        "table.md, table.json, learning_curves.png and, for a curve, table.png. If the command is stopped, run it "
        "again to continue.",
    )
    add = table.add_argument
    add(
        "table",
        type=Path,
        metavar="TABLE",
        help="a table of the papers by name, such as lwc_table3, or a file of your own",
    )
    add("--data", required=True, help="a folder that fairseq-preprocess wrote")
    add("--out", required=True, type=Path, metavar="DIR", help="a folder for checkpoints, logs and results")
    add_user_dir(table)
    add("--profile", type=Path, metavar="PROFILE", help="sizes and flags for smaller data: demo, multi30k, or a file")
    add("--rows", nargs="+", metavar="NAME", help="run only these rows and the rows that they need")
    add("--seeds", type=positive, default=1, metavar="N", help="runs of each row (default: 1)")
    for phase in ("train", "generate"):
        add(
            f"--{phase}",
            action="extend",
            type=shlex.split,
            default=[],
            metavar="FLAGS",
            help=f"additional flags of fairseq-{phase}, which override others; may be given several times",
        )
    add(
        "--references",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="reference translations that replace the data's; NAME=FILE if the table names its tests",
    )
    add("--gold", type=Path, metavar="FILE", help="gold alignments of the test set, for tables of AER")
    add_first(table)
    add(
        "--tagger",
        metavar="COMMAND",
        help="what tags words, for a table with parts of speech: a command that reads lines and writes lines of tags",
    )
    add("--parallel", type=positive, metavar="N", help="number of parallel runs (default: one per GPU, or one)")
    add(
        "--launcher",
        choices=("submitit", "local"),
        help="run each row as a job: of SLURM (submitit) or, for trying, of this machine; needs the package submitit",
    )
    add(
        "--slurm",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="what each job asks of SLURM, such as partition=gpu time=240 gpus_per_node=1 mem_gb=16; the time is in "
        "minutes (default: 1440)",
    )
    how = table.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="print the shell commands, one per line, and run nothing")
    how.add_argument("--collect", action="store_true", help="make the table from finished runs, and run nothing")
    how.add_argument("--cancel", action="store_true", help="cancel the jobs that --launcher submitted, and run nothing")
    table.set_defaults(call=make_table, parsers=commands.choices)  # it runs other commands


def make_table(args: argparse.Namespace) -> int:
    """Run a table. Returns the exit status, which is 1 if a row failed."""
    from ..analysis.alignment import read_alignments
    from ..analysis.translations import bleu
    from ..experiments.cluster import cancel_all
    from ..experiments.jobs import Settings
    from ..experiments.page import write_table
    from ..experiments.results import collect, make_detokenizer, make_record
    from ..experiments.schedule import noted_failures
    from ..experiments.states import write_plan
    from ..experiments.table_file import ALL, find_file, load_profile, load_table

    check_first(args)
    if os.pathsep in str(args.out):
        raise UserError(f"--out {args.out}: fairseq cannot read a path with {os.pathsep!r}: name another folder")
    for option, path in (("--data", args.data), ("--out", str(args.out))):
        if path != path.encode("utf-8", "replace").decode():
            raise UserError(f"{option} {path!r}: this name is not UTF-8: name another folder")
    import_plugins(args.user_dir)
    settings = Settings(
        table=load_table(find_file(args.table, "table"), args.rows),
        profile=load_profile(args.profile and find_file(args.profile, "profile")),
        data=args.data,
        out=args.out,
        train=tuple(args.train),
        generate=tuple(args.generate),
        plugins=tuple(map(absolute, args.user_dir)),
    )
    bleu(settings.table.score)  # rejects an unknown tokenizer before hours of training
    trials, jobs = settings.trials(), settings.jobs(args.seeds)
    if not (args.cancel or args.collect):
        check_flags([*trials, *jobs], args.parsers)
    if args.dry_run:
        check([*trials, *jobs])
        print_commands(trials, jobs)
        return 0
    if args.cancel:
        cancel_all([*trials, *jobs])
        return 0
    if (settings.table.metric == "aer") != bool(args.gold):
        needs = "needs --gold, the alignments of the test set" if not args.gold else "does not use --gold: leave it out"
        raise UserError(f"{args.table} {needs}")
    if args.gold and args.references:
        raise UserError(f"--references: {args.table} scores alignments, not translations: leave it out")
    if not args.collect:
        for folder in args.data.split(os.pathsep):
            if not Path(folder).is_dir():
                raise UserError(f"--data {folder}: no such folder; give the folder that fairseq-preprocess wrote")
    if settings.table.score.detokenize and not args.references:
        raise UserError(f"{args.table} needs --references, raw text, because it scores detokenised translations")
    detokenizer = make_detokenizer(settings)
    check([*trials, *jobs])
    files = files_of_references(args.references, list(settings.table.tests))
    references = {name: [read_lines(path) for path in paths] for name, paths in files.items()}
    gold = read_alignments(args.gold, args.gold_first) if args.gold else None
    if not args.collect:
        check_tests(settings, {ALL: [gold]} if gold else references, "--gold" if gold else "--references")
    tagger = make_tagger(args, settings, references) if args.tagger is not None else None
    if args.collect and not args.out.is_dir():
        raise UserError(f"--collect: --out {args.out}: no such folder; give the --out of the runs")
    runner = None if args.collect else make_runner(args, settings)
    make_folder(args.out)
    if runner:
        write_plan(args.out, [*trials, *jobs])
        if trials:
            runner.run(trials)
            jobs = settings.jobs(args.seeds)  # with the flags that the trials chose
        failures = runner.run(jobs)
    else:
        failures = noted_failures([*trials, *jobs])
    results = collect(settings, jobs, failures, references, gold, detokenizer, tagger)
    for folder, reason in failures.items():
        print(f"{folder.row}, {folder.path.name}: failed: {reason}", file=sys.stderr)
    record = make_record(settings, results, args.seeds, files, args.gold, tagger)
    written = write_table(settings, record)
    print(written[0].read_text(encoding="utf-8"))
    print("wrote " + ", ".join(map(str, written)), file=sys.stderr)
    return 1 if failures else 0


def make_runner(args: argparse.Namespace, settings: "Settings") -> "Runner | ClusterRunner":
    """Return what runs the jobs: this machine or, with --launcher, a cluster.

    Raises:
        UserError: arguments contradict each other, or the cluster cannot be used.
    """
    from ..experiments.cluster import ClusterRunner
    from ..experiments.queue import LOCAL, SLURM
    from ..experiments.schedule import Runner, devices

    if not args.launcher:
        if args.slurm:
            raise UserError("--slurm: add --launcher submitit, or leave it out")
        return Runner(devices(args.parallel))
    if args.parallel:
        raise UserError(f"--parallel {args.parallel}: all runs become jobs, which the queue starts: leave it out")
    more = dict(setting.partition("=")[::2] for setting in args.slurm)
    if "" in more.values():
        raise UserError(f"--slurm {' '.join(args.slurm)}: give KEY=VALUE, such as partition=gpu")
    place = SLURM if args.launcher == "submitit" else LOCAL
    return ClusterRunner(place, settings.table.slurm | more)


def print_commands(trials: list["Job"], jobs: list["Job"]) -> None:
    """Print the shell commands of trials, and of the jobs whose flags are known, because their trials have ended."""
    unknown: list[str] = []
    for job in jobs:
        if not job.has_flags or any(need.row in unknown for need in job.needs):
            unknown.append(job.row.name)
    known = [job for job in jobs if job.row.name not in unknown]
    print("\n".join(line for job in [*trials, *known] for line in job.shell_lines()))
    undecided = {job.row.name: job.undecided for job in jobs if job.undecided}
    for row, reason in undecided.items():
        print(f"row {row}: {reason}", file=sys.stderr)
    if waiting := [row for row in unknown if row not in undecided]:
        print(
            f"the flags of {', '.join(dict.fromkeys(waiting))} depend on trials: when the commands of the trials have "
            "run, this command prints those of these rows, too",
            file=sys.stderr,
        )


def files_of_references(given: list[Path], tests: list[str]) -> dict[str, list[Path]]:
    """Return the files of --references by test. Without named tests, there is only ALL.

    Raises:
        UserError: a file has no name of a test, or tests have different numbers of files.
    """
    from ..experiments.table_file import ALL

    if not given or not tests:
        return {ALL: given} if given else {}
    files: dict[str, list[Path]] = {name: [] for name in tests}
    for argument in given:
        name, _, path = str(argument).partition("=")
        if name not in files or not path:
            raise UserError(f"--references {argument}: give NAME=FILE, where NAME is one of {', '.join(tests)}")
        files[name].append(Path(path))
    if len({len(paths) for paths in files.values()}) > 1:
        counts = ", ".join(f"{name} {len(paths)}" for name, paths in files.items())
        raise UserError(f"--references: give all tests the same number of files, because {ALL} is one corpus: {counts}")
    return files


def check_tests(settings: "Settings", given: Mapping[str, list[list]], option: str) -> None:
    """Check the sets of the data that are to be translated or aligned.

    Args:
        given: the lines of references, or gold alignments, by test.
        option: the option that gave them.

    Raises:
        UserError: the data lack a set, or `given` has another number of lines than a set.
    """
    from fairseq.data.indexed_dataset import infer_dataset_impl, make_dataset

    folder = settings.folder_of_tests
    for name, subset in settings.tests.items():
        if not any(Path(folder).glob(f"{subset}.*")):
            raise UserError(
                f"tests: {name}: {folder} has no set {subset}: fairseq-preprocess --testpref A,B makes test and test1; "
                "a profile's `tests: {}` translates test alone"
                if settings.table.tests
                else f"{folder} has no set {subset}: fairseq-preprocess --testpref makes the set test, and "
                "`generate` or --generate chooses another one"
            )
        sides = sorted(Path(folder).glob(f"{subset}.*.idx"))  # none of text, which fairseq also reads
        for side, lines in product(sides[:1], given.get(name, [])):
            path = str(side.with_suffix(""))
            sentences = make_dataset(path, infer_dataset_impl(path))  # None if fairseq cannot read it, as it will say
            if sentences is not None and len(lines) != len(sentences):
                raise UserError(
                    f"{option}: {len(lines)} lines for the {len(sentences)} sentences of the set {subset}: give "
                    "files that match the test set line by line"
                )


def make_tagger(args: argparse.Namespace, settings: "Settings", references: dict[str, list[list[str]]]) -> "Tagger":
    """Return the tagger, which has tagged the files of --references or, without them, a sentence of ours.

    Raises:
        UserError: the table scores no parts of speech or no tokens, or the tagger cannot tag.
    """
    from ..analysis.tagger import Tagger

    if not settings.table.parts_of_speech:
        raise UserError(f"--tagger: {args.table} has no parts_of_speech to score: leave --tagger out")
    if settings.table.score.detokenize:
        raise UserError(
            f"--tagger: {args.table} scores detokenised text, which has no words to tag: leave one of `detokenize` and "
            "--tagger out"
        )
    tagger = Tagger(args.tagger)
    tagger.tag(chain(*chain(*references.values())) if references else ["two dogs run ."])
    return tagger


def check(jobs: list["Job"]) -> None:
    """Check jobs before anything runs or the last results are replaced.

    Raises:
        UserError: a run has files of other flags or data.
    """
    refusals = [refusal for job in jobs if (refusal := job.refusal())]
    if refusals:
        more = f" ({len(refusals)} runs in all)" if len(refusals) > 1 else ""
        raise UserError(f"{refusals[0]}; nothing was changed{more}")


def check_flags(jobs: list["Job"], parsers: Mapping[str, argparse.ArgumentParser]) -> None:
    """Check the flags of jobs, as far as this needs neither data nor models, before anything runs. `parsers` are those
    of the commands of `lwc-fairseq`.

    Raises:
        UserError: a command will refuse its flags, or a model or a criterion its settings.
    """
    refusals: dict[str, str] = {}  # by row
    for job in {(job.row.name, job.folder.trial): job for job in jobs}.values():
        later = [str(need.checkpoint(mean)) for need in job.needs for mean in (True, False)]
        try:
            if job.train and job.has_flags:
                check_command(job.train, later)
                check_average(job)
            if job.generate and job.generate[0] == "lwc-fairseq":
                check_arguments(parsers[job.generate[1]], job.generate[2:])
            elif job.generate:
                check_command(job.generate, later)
        except UserError as error:
            refusals.setdefault(job.row.name, f"row {job.row.name}: {error}")
    if refusals:
        more = f" ({len(refusals)} rows in all)" if len(refusals) > 1 else ""
        raise UserError(f"{next(iter(refusals.values()))}{more}")


def check_average(job: "Job") -> None:
    """Raises UserError if a training ends before it has saved the checkpoints that are averaged."""
    from ..experiments.identity import last_value

    epochs = int(last_value(job.train or [], "--max-epoch") or 0)  # 0 is no limit
    last = int(last_value(job.average or [], "--last") or 0)
    if 0 < epochs < last:
        raise UserError(
            f"--max-epoch {epochs}: the table averages the checkpoints of {last} epochs: train longer, or give a "
            f"profile with `average: {epochs}`"
        )


def check_arguments(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """Raises UserError if a parser refuses arguments."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(arguments)
    except SystemExit as error:
        raise UserError(said.getvalue().strip().rpartition("\n")[2]) from error


def check_command(command: list[str], later: list[str]) -> None:
    """Raises UserError if a command of fairseq, which trains or translates, will refuse its flags.

    Args:
        later: files that other commands make before. They need not be there.
    """
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.models import ARCH_MODEL_REGISTRY

    from lwc_fairseq_compat.options import parse_words

    from ..models.interface import TranslationModel

    name, *words = command
    for path in later:
        words = [word.replace(path, f"file://{path}") for word in words]  # nothing looks for the file of a URL
    options = parse_words(name, words)
    if name == "fairseq-train":
        model, criterion = ARCH_MODEL_REGISTRY[options.arch], CRITERION_DATACLASS_REGISTRY.get(options.criterion)
        if issubclass(model, TranslationModel):
            model.read_config(options)
        if hasattr(criterion, "check"):
            criterion.from_namespace(options).check()


def add_report(commands) -> None:
    report = commands.add_parser(
        "report",
        help="write a finished table as an HTML page",
        description="Write a self-contained HTML page: results, curve, scores by source length and by frequency of "
        "words, word alignments, samples, the sentences on which two rows differ most, and attention to explore.",
    )
    add = report.add_argument
    add("folder", type=Path, metavar="DIR", help="the folder that `table` wrote to")
    add("--out", type=Path, metavar="FILE.html", help="default: DIR/report.html")
    add("--data", help="the binary data (default: the folder that was given to `table`)")
    add("--gold", type=Path, metavar="FILE", help="gold alignments of the test set, for a table of AER")
    add_first(report)
    add_user_dir(report, more=" (default: those of `table`)")
    report.set_defaults(call=report_command)


def report_command(args: argparse.Namespace) -> int:
    from ..experiments.layout import RECORD, REPORT
    from ..experiments.report import write_report

    check_first(args)
    if args.out:
        make_place(args.out, inputs=[args.folder / RECORD, *([args.gold] if args.gold else [])])
    out = args.out or args.folder / REPORT
    write_report(args.folder, out, args.gold, args.gold_first, args.data, args.user_dir)
    print(f"wrote {out}")
    return 0
