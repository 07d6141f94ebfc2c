"""A user's own models in cases that docs/extending.md does not show."""

from textwrap import dedent

import pytest

from conftest import TINY_RECURRENT, TINY_TRAINING, run

PLUGIN = """
    from fairseq.models import register_model
    from lwc_fairseq.models.deepatt import DeepAttConfig, DeepAttModel
    from lwc_fairseq.modules.multihead_attention import MultiHeadAttention

    @register_model("deepatt_replaced", dataclass=DeepAttConfig)
    class ReplacedModel(DeepAttModel):
        @classmethod
        def build_model(cls, cfg, task):
            model = super().build_model(cfg, task)
            for layer in model.decoder.layers:
                for k, attention in enumerate(layer.attentions):
                    layer.attentions[k] = MultiHeadAttention(attention.context_dim, cfg.hidden_dim, 2)
            return model
"""
"""Multi-head attention with contexts as wide as those of the attention that it replaces."""

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


def test_a_folder_relative_to_the_caller_is_kept_as_a_full_path(here, tiny_data):
    command = ("lwc-fairseq", "table", "table.yaml", "--data", tiny_data, "--out", "out", "--user-dir", "replacing")
    assert f":{here / 'replacing'} " in run(*command, "--dry-run", cwd=here).stdout
