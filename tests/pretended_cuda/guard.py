"""The library of ``guard.cpp``: compiled once for each installed PyTorch, and loaded before PyTorch."""

import ctypes
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_name("guard.cpp")


def load_guard() -> None:
    """Load the library, after compiling it if there is none, and then PyTorch.

    PyTorch looks for its CUDA hooks only once, so this must come before any other ``import torch``.

    Raises:
        RuntimeError: torch is already imported.
        subprocess.CalledProcessError: the C++ compiler failed.
    """
    if "torch" in sys.modules:
        raise RuntimeError("the guard of the pretended CUDA device must be loaded before torch is imported")
    library = library_path()
    if not library.exists():
        compile_guard(library)
    loaded = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    importlib.import_module("torch")
    loaded.register_guard()


def library_path() -> Path:
    """Where the library for the installed PyTorch is: a file in the user's cache.

    The library holds the folder of the PyTorch it was built for, so each folder has a file of its own.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256(SOURCE.read_bytes() + torch_folder().encode()).hexdigest()[:12]
    return cache / "lwc_fairseq" / f"pretended-cuda-{version('torch')}-{key}.so"


def torch_folder() -> str:
    """The folder of the installed PyTorch, without importing it."""
    (folder,) = find_spec("torch").submodule_search_locations
    return folder


def compile_guard(library: Path) -> None:
    """Compile into a file of its own and rename it, so that processes may compile at the same time."""
    torch = torch_folder()
    ask = "import torch; print(int(torch.compiled_with_cxx11_abi()))"  # 0 for some builds of PyTorch 2.6
    abi = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        built = Path(folder) / library.name
        compiler = os.environ.get("CXX", "c++")
        flags = ("-shared", "-fPIC", "-O1", "-std=c++20", f"-I{torch}/include", f"-D_GLIBCXX_USE_CXX11_ABI={abi}")
        links = (f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-lc10", "-ltorch_cpu")
        subprocess.run([compiler, *flags, str(SOURCE), "-o", str(built), *links], check=True)
        os.replace(built, library)
