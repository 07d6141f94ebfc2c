"""A user's own models in cases that docs/extending.md does not show."""

from textwrap import dedent

import pytest
import torch

from conftest import TINY_RECURRENT, TINY_TRAINING, refused, run

PLUGIN = """
    from dataclasses import dataclass, field

    from fairseq.models import register_model
    from lwc_fairseq_compat import UserError
    from lwc_fairseq.models.lwc_transformer import CoordinatedStack, LWCTransformerConfig, LWCTransformerModel
    from lwc_fairseq.models.deepatt import DeepAttConfig, DeepAttModel
    from lwc_fairseq.modules.recurrent import MultiHeadAttention
    from torch import nn

    @register_model("deepatt_replaced", dataclass=DeepAttConfig)
    class ReplacedModel(DeepAttModel):
        @classmethod
        def build_model(cls, cfg, task):
            model = super().build_model(cfg, task)
            for layer in model.decoder.layers:
                for k, attention in enumerate(layer.attentions):
                    layer.attentions[k] = MultiHeadAttention(attention.context_dim, cfg.hidden_dim, 2)
            return model


    @dataclass
    class SizedConfig(LWCTransformerConfig):
        own_width: int = field(default=24, metadata={"help": "an option of mine"})

        def check(self):
            super().check()
            if self.own_width % 8:
                raise UserError(f"--own-width {self.own_width}: must be a multiple of 8")

    class SizedStack(CoordinatedStack):
        def make_layers(self, cfg):
            layers = super().make_layers(cfg)
            for layer in layers:
                layer.own = nn.Linear(cfg.own_width, 1)
            return layers

    @register_model("lwc_sized", dataclass=SizedConfig)
    class SizedModel(LWCTransformerModel):
        @classmethod
        def build_stack(cls, cfg, dictionary):
            return SizedStack(cfg, len(dictionary), dictionary.pad())
"""
"""Multi-head attention with contexts as wide as those of the attention that it replaces, and a stack of one's own."""

TABLE = """
title: One row
train: --optimizer adam --max-tokens 400
rows: [{name: replaced, arch: deepatt_replaced}]
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "replacing").mkdir()
    (tmp_path / "replacing" / "__init__.py").write_text(dedent(PLUGIN))
    (tmp_path / "table.yaml").write_text(TABLE)
    return tmp_path


def test_an_attention_replaced_after_construction_is_trained(here, tiny_data):
    sizes = ("--attention-layers", "2", *TINY_RECURRENT, "--max-update", "2", "--save-dir", "out")
    task = ("--user-dir", "replacing", "--task", "concat_translation", "--arch", "deepatt_replaced")
    run("fairseq-train", tiny_data, *TINY_TRAINING, *task, *sizes, cwd=here)
    assert (here / "out" / "checkpoint_last.pt").exists()


def test_an_option_of_ones_own_is_checked_and_reaches_the_layers(here, tiny_data):
    task = ("--user-dir", "replacing", "--task", "concat_translation", "--arch", "lwc_sized")
    sizes = ("--layers", "2", "--embed-dim", "16", "--attention-heads", "2", "--max-update", "2", "--save-dir", "out")
    command = ("fairseq-train", tiny_data, *TINY_TRAINING, *task, *sizes, "--own-width")
    assert "--own-width 13: must be a multiple of 8" in refused(*command, "13", cwd=here)
    run(*command, "32", cwd=here)
    saved = torch.load(here / "out" / "checkpoint_last.pt")["model"]
    assert saved["encoder.stack.layers.1.own.weight"].shape == (1, 32)


def test_a_folder_relative_to_the_caller_is_kept_as_a_full_path(here, tiny_data):
    command = ("lwc-fairseq", "table", "table.yaml", "--data", tiny_data, "--out", "out", "--user-dir", "replacing")
    assert f":{here / 'replacing'} " in run(*command, "--dry-run", cwd=here).stdout
