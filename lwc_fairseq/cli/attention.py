"""`lwc-fairseq attention`: pictures of a model's attention, and a page to explore it."""

import argparse
import logging
import sys
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import make_place, write_whole
from .arguments import add_translator, load_with_attention, number_or_all, utf8
from .translate import SUBWORDS_HINT, warn

FORMATS = (".png", ".svg", ".pdf", ".html")


def add_attention(commands) -> None:
    attention = commands.add_parser(
        "attention",
        help="pictures of attention, or a page to explore it",
        description="Draw heat maps of a model's attention while it produces a translation: over the source and, to "
        "the right of a line, over the target so far (mixed attention, self-attention) or the reverse translation. "
        "Each row is the step that produces a token. Tokens are sub-words, if the data has sub-words. The columns of "
        "a right-to-left language run from right to left. The file text.yaml in the folder of the data, which the "
        "recipes write, says how to prepare the text. Without it, or with one of the options for sub-words, the text "
        "must be tokenized as the data, with spaces around punctuation. With a .html file, write a page instead, in "
        "which you point at a token and see where it attends, in each layer and head, and follow the beam search step "
        "by step.",
    )
    add = attention.add_argument
    add_translator(attention, "--source and --target are")
    add("--source", required=True, type=utf8, metavar="TEXT", help="a sentence")
    add("--target", type=utf8, metavar="TEXT", help="its translation (default: the model's own)")
    add(
        "--layer",
        type=lambda text: text if text == "mean" else number_or_all(text),
        metavar="K",
        help="layer, from 0, or all (default), or mean for the mean over layers; a page begins with it",
    )
    add("--head", type=number_or_all, metavar="H", help="head, from 0, or all for the mean (default); as --layer")
    add("--out", required=True, type=Path, metavar="FILE", help="output file, .png, .svg, .pdf or .html")
    add("--weights", type=Path, metavar="FILE.npz", help="also write the weights")
    attention.set_defaults(call=attention_command)


def attention_command(args: argparse.Namespace) -> int:
    from ..analysis.attention import attend, panels, save_weights, sentences, translations
    from ..preparation import Words, target_words

    if args.out.suffix not in FORMATS:
        raise UserError(f"--out {args.out}: give a name that ends in {', '.join(FORMATS)}")
    make_place(args.out)
    if args.weights:
        make_place(args.weights, "--weights")
    translator = load_with_attention(args)
    model, task = translator.models[0], translator.task
    source, target = translator.apply_bpe(translator.tokenize(args.source)), args.target
    if target is not None:
        words = translator.tokenizer
        words = target_words(words.preparation) if isinstance(words, Words) else words
        target = translator.apply_bpe(words.encode(target) if words else target)
    texts = {"--source": (source, task.source_dictionary), "--target": (target or "", task.target_dictionary)}
    for option, (text, dictionary) in texts.items():
        if missing := dict.fromkeys(token for token in text.split() if token not in dictionary):
            hint = "" if translator.bpe else SUBWORDS_HINT
            warn(f"{option}: not in the vocabulary, so the model reads <unk>: {' '.join(missing)}{hint}")
    hypotheses, beams = translations(model, task, source, target)
    best = attend(model, task, source, hypotheses[0])
    made = panels(best, args.layer, args.head)
    if args.out.suffix == ".html":
        from ..analysis.attention_page import make_page, page_data

        others = [attend(model, task, source, hypothesis) for hypothesis in hypotheses[1:]]
        data = page_data(task, hypotheses, [best, *others], beams)
        write_whole(args.out, make_page(data, args.layer, args.head))
    else:
        from ..analysis.picture import draw

        print(f"drawing {len(made)} layers of {len(best.rows)} by {len(made[0].columns)} tokens", file=sys.stderr)
        logging.getLogger("fontTools").setLevel(logging.WARNING)  # it logs each table of a font in a .pdf
        draw(made, args.out, sentences(best, task))
    if args.weights:
        save_weights(made, args.weights)
    print("wrote " + ", ".join(str(path) for path in (args.out, args.weights) if path))
    return 0
