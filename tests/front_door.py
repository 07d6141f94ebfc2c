"""The commands of the environment, without waiting for their imports each time.

A command such as `fairseq-train` is a function of an installed package, and for seconds it does nothing but import. So
one process, which has imported what all of them import, waits for requests and forks for each: the child takes over
arguments, folder and files of the request, runs the function and then what is registered for its end. Nothing is
computed before the fork, and the modules of the commands, and this plugin, are imported after it. The order of imports
is another one: no patch of fairseq may depend on that. Nor is the memory of a child taken apart at its end, which takes
longer than many a command.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

IMPORTED = ("torch", "fairseq.checkpoint_utils", "fairseq.tasks", "fairseq.models", "fairseq.trainer", "sacrebleu")
IMPORTED += ("torch._dynamo", "matplotlib.figure", "sacremoses")  # the first by any optimizer that is made
EXIT_STATUS_BYTES = 4


class FrontDoor:
    """Starts the waiting process with the first command, in this environment."""

    def __init__(self, environment: dict[str, str]):
        self.scripts = {script.name for script in entry_points(group="console_scripts")}
        self.environment = environment
        self.server = None

    def knows(self, command: list[str], environment: dict[str, str]) -> bool:
        """Whether a command can be run here: a console script, in the environment of the process that waits."""
        return command[0] in self.scripts and environment == self.environment

    def run(
        self,
        command: list[str],
        cwd: Path,
        stdin: str | None = None,
        output: int | None = None,
        path: Sequence[str] = (),
    ) -> subprocess.CompletedProcess:
        """As subprocess.run, with text captured; what is not UTF-8 is in the text as Python's surrogates.

        Args:
            command: a console script with its arguments, or "python" with a file or with "-c" and code.
            output: a file's number, to which both outputs are written instead.
            path: folders where the command looks for modules first.
        """
        if self.server is None:
            self._start()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write((stdin or "").encode("utf-8", "surrogateescape"))
            given.seek(0)
            request = json.dumps({"command": command, "cwd": str(cwd), "path": [*map(str, path)]}).encode()
            socket.send_fds(self.here, [request], [given.fileno(), output or out.fileno(), output or err.fileno()])
            status = self.here.recv(EXIT_STATUS_BYTES)
            if not status:
                raise RuntimeError(f"the process that runs commands has ended at: {command}")
            out.seek(0)
            err.seek(0)
            code = int.from_bytes(status, "little", signed=True)
            return subprocess.CompletedProcess(
                command, code, *(file.read().decode("utf-8", "surrogateescape") for file in (out, err))
            )

    def _start(self) -> None:
        self.here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(there.fileno())]
        files = {"pass_fds": [there.fileno()], "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.server = subprocess.Popen(command, env=self.environment, **files)
        there.close()

    def close(self) -> None:
        if self.server is not None:
            self.here.close()
            self.server.wait()


def serve(requests: socket.socket) -> dict:
    """Answer requests with exit statuses until there are none; in a child, return with the request that it is for."""
    while True:
        message, files, _, _ = socket.recv_fds(requests, 2**20, 3)
        if not message:
            sys.exit()
        request = json.loads(message)
        child = os.fork()
        if child == 0:
            requests.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.chdir(request["cwd"])
            return request
        for file in files:
            os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        requests.send(code.to_bytes(EXIT_STATUS_BYTES, "little", signed=True))


def load(command: list[str], path: list[str]) -> Callable:
    """The function of a command. It finds its arguments and modules as if it had been started by itself."""
    name, *sys.argv = (os.fsdecode(word.encode("utf-8", "surrogateescape")) for word in command)
    if name != "python":
        script = Path(sys.executable).parent / name
        sys.argv.insert(0, str(script))
        sys.path[:1] = [str(script.parent), *path]
        return entry_points(group="console_scripts", name=name)[name].load()
    if sys.argv[0] == "-c":
        sys.path[:1] = ["", *path]
        program = sys.modules["__main__"] = ModuleType("__main__")
        return partial(exec, sys.argv.pop(1), vars(program))
    sys.path[:1] = [str(Path(sys.argv[0]).resolve().parent), *path]
    return lambda: runpy.run_path(sys.argv[0], run_name="__main__") and None  # its variables are no exit status


def execute(command: list[str], path: list[str]) -> int:
    """The exit status of a command; what ends it is printed as Python does, after the command's variables are gone."""
    try:
        code = load(command, path)()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        return 1
    return int(code or 0)


def main() -> None:
    sys.argv[0] = "fairseq-command"  # fairseq's commands prepare their streams when fairseq is imported
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()  # a child has no garbage among these to look for
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    status = execute(request["command"], request["path"])
    atexit._run_exitfuncs()  # which os._exit leaves out
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
