"""Packs: one file with all that a trained model needs to translate raw text.

A pack is a zip archive with these members:

    model.pt                        the checkpoint in half precision, without its optimizer and the names of folders
    dict.de.txt, dict.en.txt        the dictionaries, named by the languages
    text.yaml, codes, case_model    how raw text becomes tokens (lwc_fairseq.preparation); the files that it names
    README.md                       the model card

`lwc-fairseq pack` writes one. `load` and the commands that use it take it in place of a checkpoint, and also its
address, as https://…/model.zip#sha256=…. They unpack it once, into a folder of the cache that its checksum names.
"""

import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import torch
import yaml
from fairseq.checkpoint_utils import torch_persistent_save
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf
from tqdm.auto import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.dictionaries import check_words
from lwc_fairseq_compat.files import whole_file

from .files import checksum
from .preparation import FILE, check_direction, copy_preparation, read_preparation

MODEL, CARD = "model.pt", "README.md"
MEMBER = re.compile(r"model\.pt|dict\.[\w-]+\.txt|text\.yaml|codes|case_model|README\.md")
ADDRESS = re.compile(r"(https?://[^#]+)(?:#sha256=([0-9a-fA-F]{64}))?")


def write_pack(state: Mapping, data: Path, card: Path, out: Path) -> None:
    """Write a pack.

    Args:
        state: a checkpoint, as `torch.load` returns it.
        data: the folder of binary data that the model was trained on, with `text.yaml`.
        card: the model card.

    Raises:
        UserError: `data` lacks `text.yaml` or a dictionary, or is not that of the model: of the opposite direction, or
            with other words; or the pack cannot be written.
    """
    preparation = read_preparation(data)
    if preparation is None:
        raise UserError(f"{data}: no {FILE} says how its text was made: write one (docs/decoding.md)")
    languages = {"source_lang": preparation.source, "target_lang": preparation.target}
    packed = without_training(state, languages)
    trained = state["cfg"]["task"]
    source, target = infer_language_pair(str(data))
    check_direction(data, preparation, trained["source_lang"] or source, trained["target_lang"] or target)
    files = [data / f"dict.{language}.txt" for language in languages.values()]
    source_words, target_words = (Dictionary.load(str(file)) for file in files)
    check_words(SimpleNamespace(src_dict=source_words, tgt_dict=target_words), packed["task_state"])
    try:
        with whole_file(out) as making, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            torch_persistent_save(packed, str(folder / MODEL))
            for file in files:
                shutil.copy(file, folder)
            settings = copy_preparation(preparation, folder)
            (folder / FILE).write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
            shutil.copy(card, folder / CARD)
            with zipfile.ZipFile(making, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
                for path in sorted(folder.iterdir()):
                    archive.write(path, path.name)
    except OSError as error:
        named = str(error.filename or out)
        raise UserError(f"{out if named.startswith(str(out)) else named}: {error.strerror}") from error


def without_training(state: Mapping, languages: dict[str, str]) -> dict:
    """Return a checkpoint with what translation needs: weights in half precision, the words of the dictionaries, and
    the options of the model, the task and the criterion, without the names of files and folders.

    Args:
        languages: of the task, which a training may have read from the names of its files.
    """
    halves: dict[tuple, torch.Tensor] = {}  # a weight with several names is written once
    weights = {}
    for name, value in state["model"].items():
        if value.is_floating_point():
            place = (value.data_ptr(), value.shape)
            value = halves.setdefault(place, value.half())
        weights[name] = value
    cfg: Any = OmegaConf.to_container(OmegaConf.structured(FairseqConfig()), enum_to_str=True)
    for part in ("model", "task", "criterion"):
        options = state["cfg"][part]
        is_namespace = isinstance(options, Namespace)  # of a model without a dataclass: it has all options of training
        given = vars(options) if is_namespace else options
        has_path = {name for name, value in given.items() if isinstance(value, str) and os.sep in value}
        cfg[part] = {**given, **dict.fromkeys(has_path)}
        if is_namespace:
            cfg[part] = Namespace(**cfg[part] | {"data": "."})
    cfg["task"] |= {"data": ".", "eval_bleu": False, **languages}
    history = state["optimizer_history"][-1] | {"lr_scheduler_state": {}}
    return {
        "args": None,
        "cfg": cfg,
        "model": weights,
        "criterion": None,
        "extra_state": {},
        "task_state": state.get("task_state", {}),
        "optimizer_history": [history],
        "last_optimizer_state": None,
    }


def is_address(source: str | os.PathLike) -> bool:
    return ADDRESS.fullmatch(str(source)) is not None


def is_pack(source: str | os.PathLike) -> bool:
    """Return whether a file is a pack, or a text is the address of one.

    PyTorch's checkpoints are zip archives, too, whose members are in a folder. Damaged files are for the reader of
    checkpoints to name.
    """
    if is_address(source):
        return True
    try:
        with zipfile.ZipFile(source) as archive:
            return MODEL in archive.namelist()
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError):  # the last is of a wrong version
        return False


def checkpoint_of(source: str | os.PathLike) -> Path:
    """Return the checkpoint in a pack, given by its path or address, or the checkpoint itself.

    Raises UserError as :func:`unpack` does.
    """
    return unpack(source) / MODEL if is_pack(source) else Path(source)


def unpack(source: str | os.PathLike) -> Path:
    """Return the folder of an unpacked pack, in the cache ($XDG_CACHE_HOME/lwc_fairseq, by default ~/.cache/…).

    Raises:
        UserError: an address lacks its checksum or cannot be reached, or the file has another checksum.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lwc_fairseq"
    address = ADDRESS.fullmatch(str(source))
    if address is None:
        return unpack_file(Path(source), cache / checksum(Path(source)))
    url, expected = address.groups()
    if expected is None:
        raise UserError(f"{url}: add the checksum that is published with it: {url}#sha256=…")
    folder = cache / expected.lower()
    if is_whole(folder):
        return folder
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "pack.zip"
        try:
            download(url, path)
        except (OSError, HTTPException, ValueError) as error:  # the last of a malformed address
            raise UserError(f"{url}: {error}: fetch the file on another machine, and give its path") from error
        if checksum(path) != folder.name:
            raise UserError(f"{url}: its checksum is not {expected}: look whether the address or its pack changed")
        return unpack_file(path, folder)


def is_whole(folder: Path) -> bool:
    """Return whether an unpacked pack has all its files; some programs remove old ones from caches."""
    names = {path.name for path in folder.glob("*")}
    dictionaries = [name for name in names if name.startswith("dict.")]
    try:
        return names >= {MODEL, CARD} and len(dictionaries) == 2 and read_preparation(folder) is not None
    except UserError:  # a file that text.yaml names is missing
        return False


def download(url: str, path: Path) -> None:
    """Write what an address holds to a file, with a progress bar. Raises OSError if the other side is silent for a
    minute, or sends less than it announced."""
    with urlopen(url, timeout=60) as answer, path.open("wb") as file:
        size = answer.length
        with tqdm.wrapattr(answer, "read", total=size, desc=url.rpartition("/")[2], leave=False) as counted:
            shutil.copyfileobj(counted, file)
        if size is not None and file.tell() < size:
            raise OSError(f"it ended after {file.tell()} of {size} bytes")


def unpack_file(pack: Path, folder: Path) -> Path:
    """Unpack a file, unless it was unpacked before, and return the folder, which its checksum names.

    A folder that has lost files, as to a program that removes old ones, is made again.
    """
    cache = folder.parent
    try:
        if folder.exists():
            with zipfile.ZipFile(pack) as archive:
                if all((folder / name).exists() for name in archive.namelist()):
                    return folder
            shutil.rmtree(folder, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(folder) as making, zipfile.ZipFile(pack) as archive:
            size, free = sum(member.file_size for member in archive.infolist()), shutil.disk_usage(cache).free
            if size > free:
                raise UserError(f"{pack}: unpacked, it has {size:,} bytes, but {cache} has room for {free:,} only")
            Path(making).mkdir()
            for name in archive.namelist():
                if not MEMBER.fullmatch(name):
                    raise UserError(f"{pack}: {name}: a pack has no such member")
                archive.extract(name, making)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{pack}: a damaged pack ({error}): fetch it again") from error
    except RuntimeError as error:  # a member is encrypted, or compressed in a way that Python does not know
        raise UserError(f"{pack}: {error}: a pack is as `lwc-fairseq pack` has written it") from error
    except OSError as error:
        if not folder.exists():  # if it does, another process was faster
            raise UserError(f"{cache}: {error.strerror}: set XDG_CACHE_HOME to a folder for unpacked packs") from error
    return folder
