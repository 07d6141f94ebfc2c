"""Part-of-speech taggers, which are programs of their own."""

import subprocess
from collections.abc import Iterable

from lwc_fairseq_compat import UserError


class Tagger:
    """A command for bash that reads lines of words, and writes for each line a line with a tag for each word.

    The command does not get lines without words, because some taggers skip them, and gets equal lines once.
    """

    def __init__(self, command: str):
        self.command = command
        self.known = {"": ""}  # the tags of the lines so far

    def tag(self, lines: Iterable[str]) -> list[str]:
        """Return the tags of each line.

        Raises:
            UserError: the command fails, or writes another number of lines or tags.
        """
        texts = [" ".join(line.split()) for line in lines]
        if new := [text for text in dict.fromkeys(texts) if text not in self.known]:
            self.known.update(zip(new, self.run(new), strict=True))
        return [self.known[text] for text in texts]

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines that the command writes. Raises UserError as :meth:`tag` does."""
        bash, given = ["bash", "-o", "pipefail", "-c", self.command], "\n".join([*lines, ""]).encode()
        done = subprocess.run(bash, input=given, capture_output=True)
        output, errors = (stream.decode(errors="replace").rstrip("\n") for stream in (done.stdout, done.stderr))
        tagged = output.split("\n") if output else []
        said = f" (its last message: {errors.splitlines()[-1]})" if errors else ""
        if done.returncode:
            raise UserError(
                f"--tagger {self.command}: the command failed with status {done.returncode}{said}: give one that bash "
                "can run"
            )
        if len(tagged) != len(lines):
            raise UserError(
                f"--tagger {self.command}: {len(tagged)} lines of tags for {len(lines)} lines of words{said}: give a "
                "command that writes one line for each line that it reads"
            )
        for line, tags in zip(lines, tagged, strict=True):
            if len(tags.split()) != len(line.split()):
                raise UserError(
                    f"--tagger {self.command}: {len(tags.split())} tags ({tags}) for {len(line.split())} words "
                    f"({line}): give a command that writes one tag for each word, as spaces separate words"
                )
        return tagged
