"""`lwc-fairseq reverse`: reverse translations of binary data, made once by a right-to-left model."""

import argparse
import logging
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import checksum, import_plugins
from .arguments import add_user_dir, positive


def add_reverse(commands) -> None:
    reverse = commands.add_parser(
        "reverse",
        help="reverse translations of the data for abd, abd_rnmt, abd_lwc and nsc",
        description="Translate the sources of all sets in the data by a right-to-left model. The translations go into "
        "the folder reverse of the data, where --reverse-context translations and --reverse-from-data read them. The "
        "same command goes on where it was interrupted, and leaves out the sets that are done.",
    )
    add = reverse.add_argument
    add(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a model that was trained with --task concat_translation --reverse-target; or a pack, or the address of "
        "one",
    )
    add("--data", required=True, help="a folder that fairseq-preprocess wrote")
    add("--beam", type=positive, default=1, metavar="N", help="beam width (default: 1, which is greedy)")
    add("--batch-size", type=positive, default=64, metavar="N", help="sentences translated at a time (default: 64)")
    add("--fresh", action="store_true", help="replace the translations that another checkpoint, beam or data made")
    add_user_dir(reverse)
    reverse.set_defaults(call=reverse_command)


def reverse_command(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from ..analysis.attention import load
    from ..data.reverse import require_reversed
    from ..data.reverse_files import Origin, ReverseFiles, describe, open_sources, source_path
    from ..packs import checkpoint_of
    from ..search.reverse_data import translate_reversed

    import_plugins(args.user_dir)
    logging.getLogger("fairseq").setLevel(logging.WARNING)
    model, task = load(args.checkpoint, args.data)
    require_reversed(task.cfg, args.checkpoint)
    languages = task.cfg.source_lang, task.cfg.target_lang
    names = sorted({path.name.partition(".")[0] for path in Path(args.data).glob(f"*.{languages[0]}.idx")})
    paths = {name: path for name in names if (path := source_path(args.data, name, languages))}
    if not paths:
        raise UserError(f"--data {args.data}: no binary data of {' to '.join(languages)} in it")
    dictionaries = task.source_dictionary, task.target_dictionary
    files = {name: ReverseFiles(args.data, name, languages) for name in paths}
    made_by = checkpoint_of(args.checkpoint)
    content = checksum(made_by)
    origins = {
        name: Origin(str(made_by.resolve()), content, args.beam, **describe(path, dictionaries))
        for name, path in paths.items()
    }
    for name, origin in origins.items():  # all of them, before the first is translated
        if not args.fresh:
            files[name].check_origin(origin)
        elif files[name].origin() != origin:
            files[name].remove()
    for name, origin in origins.items():
        if not files[name].missing:
            print(f"{files[name].prefix}: done before")
            continue
        sources = open_sources(paths[name], task.source_dictionary)
        with files[name].writing(origin, len(task.target_dictionary)) as unfinished:
            missing = unfinished.missing
            counted = {"total": origin.sentences, "initial": origin.sentences - len(missing), "unit": " sentences"}
            with tqdm(desc=name, mininterval=5, **counted) as progress:
                for batch in translate_reversed(model, task, sources, missing, args.beam, args.batch_size):
                    unfinished.add(batch)
                    progress.update(len(batch))
        print(f"wrote {files[name].prefix}.bin and .idx, {origin.sentences:,} translations", flush=True)
    return 0
