"""Presets: a preset registers a model under another name, with other defaults."""

import sys
from dataclasses import field, fields, make_dataclass

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model


def register_preset(
    name: str, model: type[BaseFairseqModel], config: type[FairseqDataclass], **defaults: object
) -> None:
    """Register `model` as `name`, with `config`'s defaults changed to `defaults`.

    fairseq's own presets are functions that set the options missing from the command line. fairseq calls them twice,
    and hydra never calls them. A preset that is a model with its own dataclass behaves alike with --arch, hydra and
    YAML.
    """
    changed = [
        (f.name, f.type, field(default=defaults.pop(f.name), metadata=f.metadata))
        for f in fields(config)
        if f.name in defaults
    ]
    if defaults:
        raise TypeError(f"preset {name}: {config.__name__} has no {', '.join(defaults)}")
    namespace = {"__module__": config.__module__, "__doc__": config.__doc__}
    preset_config = make_dataclass(config.__name__, changed, bases=(config,), namespace=namespace)
    register_model(name, dataclass=preset_config)(make_preset_class(name, model))


def make_preset_class(name: str, model: type[BaseFairseqModel], **attributes: object) -> type[BaseFairseqModel]:
    """Return a subclass of `model` that is in the module of `model` as `name`, where pickle looks for it."""
    place = {"__module__": model.__module__, "__qualname__": name, "__doc__": model.__doc__}
    preset = type(model.__name__, (model,), {**place, **attributes})
    setattr(sys.modules[model.__module__], name, preset)
    return preset
