"""Reading YAML files whose keys are the fields of a dataclass.

The type of a field says how a value is read. By YAML's own rules the language `no` would be a truth value, and the
label 1.10 the number 1.1.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import yaml

from lwc_fairseq_compat import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")

NOTHING = ("", "~", "null", "Null", "NULL")


class Unquoted(str):
    """A value without quotation marks, which may stand for a number, a truth value or nothing."""


class Loader(yaml.SafeLoader):
    """Keeps values as they are written, and refuses keys that occur twice."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return Unquoted(node.value) if node.style is None else node.value
        return super().construct_object(node, deep)

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value}: this key occurs twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return node


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{where}: not YAML: {error.problem}") from error
    except RecursionError as error:
        raise UserError(f"{path}: not YAML: it is nested too deeply") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a file of keys and values")
    return content


def as_settings(where: str, kind: type[Settings], values: dict[str, Any]) -> Settings:
    """Convert the content of a file to a dataclass, whose fields are texts, numbers, truth values, dataclasses, or
    lists or dictionaries of these.

    Args:
        where: the origin of the values, for error messages.
        values: what :func:`read_yaml` returns.

    Raises:
        UserError: a key is unknown or missing, or a value has the wrong type.
    """
    types = get_type_hints(kind)
    for key in values:
        if key not in types:
            raise UserError(f"{where}: {key}: no such key; the keys are {', '.join(types)}")
    for field in fields(kind):
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"{where}: {field.name} is missing")
    return kind(**{key: convert(f"{where}: {key}", types[key], value) for key, value in values.items()})


def convert(where: str, kind: Any, value: Any) -> Any:
    """Convert a value to a type.

    Raises:
        UserError: it has another type.
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    is_quoted = isinstance(value, str) and not isinstance(value, Unquoted)
    is_nothing = value in NOTHING and not is_quoted
    if is_nothing and NoneType in kinds:
        return None
    kind = next(kind for kind in kinds if kind is not NoneType)
    if isinstance(value, dict) and isinstance(kind, type) and is_dataclass(kind):
        return as_settings(where, kind, value)
    if isinstance(value, dict) and get_origin(kind) is dict:
        return {key: convert(f"{where}: {key}", get_args(kind)[1], part) for key, part in value.items()}
    if isinstance(value, list) and get_origin(kind) is list:
        return [convert(where, get_args(kind)[0], part) for part in value]
    if isinstance(value, str) and not is_nothing and (kind is str or not is_quoted) and kind in READERS:
        with contextlib.suppress(ValueError):
            return READERS[kind](value)
    wanted = WANTED.get(get_origin(kind) or kind, "keys and values") + (
        ", without quotation marks" if is_quoted else ""
    )
    given = (f'"{value}"' if is_quoted else value or "nothing") if isinstance(value, str) else "not one value"
    raise UserError(f"{where}: {given}: give {wanted}")


def truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


READERS: dict[Any, Callable[[str], Any]] = {str: str, bool: truth, int: int, float: finite}
WANTED = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
