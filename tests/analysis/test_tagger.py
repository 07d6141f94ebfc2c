"""Taggers: which lines they get, what they must write, and the one of examples/tags.py."""

from importlib.util import find_spec

import pytest

from conftest import ROOT, run, run_python
from lwc_fairseq.analysis.tagger import Tagger
from lwc_fairseq_compat import UserError


def test_a_line_with_words_is_tagged_once(tmp_path):
    """Empty lines are not tagged, and what separates words becomes one space."""
    tagger = Tagger(f"tee -a {tmp_path / 'read'} | sed -E 's/[^ ]+/NN/g'")
    assert tagger.tag(["", "a\u00a0 b ", "c", " ", "a b"]) == ["", "NN NN", "NN", "", "NN NN"]
    assert tagger.tag(["c", "é d f"]) == ["NN", "NN NN NN"] and tagger.tag([]) == []
    assert (tmp_path / "read").read_text(encoding="utf-8") == "a b\nc\né d f\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sed s/.*/NN/", "1 tags (NN) for 2 words (a b): give a command that writes one tag for each word"),
        ("sed p", "4 lines of tags for 2 lines of words: give a command that writes one line for each"),
        ("cat > /dev/null", "0 lines of tags for 2 lines of words"),
        ("", "0 lines of tags for 2 lines of words"),
        ("no-such-tagger", "the command failed with status 127 (its last message: bash: "),
        ("no-such-tagger | cat", "no-such-tagger: command not found): give one that bash can run"),
        ("cat; echo broken >&2; exit 3", "the command failed with status 3 (its last message: broken)"),
    ],
)
def test_what_a_tagger_cannot_do(command, message):
    with pytest.raises(UserError) as refused:
        Tagger(command).tag(["a b", "c"])
    assert str(refused.value).startswith(f"--tagger {command}: ") and message in str(refused.value)


@pytest.mark.skipif(find_spec("textblob") is None, reason="textblob is not installed")
def test_textblob():
    """Tags of the Penn Treebank, and one for each word, whatever it is."""
    tags = {
        "the old dogs barked loudly": "DT JJ NNS VBD RB",
        "": "",
        "she has written a book &quot; here &quot;": 'PRP VBZ VBN DT NN " RB "',
    }
    words = [
        "/ // and/or \\/ a&slash;b",
        "@-@ &amp; &#32; &nbsp; &lt;unk&gt; <unk> <<unk>>",
        "été 漢字 ( ) _ a_NN 1\u2009000",
    ]
    text = "".join(f"{line}\n" for line in [*tags, *words])
    tagged = run("python", ROOT / "examples" / "tags.py", stdin=text).stdout.removesuffix("\n").split("\n")
    assert tagged[:3] == list(tags.values()) and [len(line.split()) for line in tagged[3:]] == [5, 7, 8]


def test_textblob_that_is_not_installed():
    hides = "import runpy, sys; sys.modules['textblob'] = None; runpy.run_path('examples/tags.py', {}, '__main__')"
    done = run_python("-c", hides, check=False)
    assert done.returncode and done.stderr.startswith("tags: error: No module named 'textblob")
    assert done.stderr.endswith("; install it with: pip install '.[tags]'\n")
