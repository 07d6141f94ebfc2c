"""Presets: named settings of a model's dataclass, for --arch and for hydra's model=."""

from dataclasses import replace

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model_architecture
from hydra.core.config_store import ConfigStore


def register_preset(model: str, name: str, config: type[FairseqDataclass], **settings) -> None:
    """Register `settings`, those fields of `config` that differ from its defaults, under `name`.

    With --arch, flags given on the command line win over the preset. fairseq calls the preset's function twice, the
    second time on a configuration that is complete: it only fills what is absent.
    """

    def fill(args):
        for field, value in settings.items():
            if not hasattr(args, field):
                setattr(args, field, value)

    register_model_architecture(model, name)(fill)
    node = replace(config(), **settings)
    node._name = model
    ConfigStore.instance().store(name=name, group="model", node=node, provider="lwc_fairseq")
