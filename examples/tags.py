"""Tag the words of English text: `lwc-fairseq table --tagger "python examples/tags.py"`.

    python examples/tags.py < TEXT > TAGS

For each line of words, which spaces separate, it writes a line with a tag of the Penn Treebank for each word. The
tagger is that of textblob: a lexicon, and rules for other words. It does not look at the words around a word. The
package contains its files: pip install '.[tags]'
"""

import argparse
import html
import io
import sys


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    try:
        from textblob.en import parser
    except ImportError as error:
        sys.exit(f"tags: error: {error}; install it with: pip install '.[tags]'")
    for line in io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="\n"):
        words = [html.unescape(word) for word in line.split()]  # Moses' tokenizer writes &quot; and &apos;s
        print(*(tag for _, tag in parser.find_tags(words)))


if __name__ == "__main__":
    main()
