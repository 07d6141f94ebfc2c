"""The configurations in `examples/configs` have the settings of the papers' tables."""

from pathlib import Path

import pytest
import yaml
from fairseq import options
from fairseq.dataclass.configs import FairseqConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf

from conftest import ROOT
from lwc_fairseq.experiments.jobs import Settings
from lwc_fairseq.experiments.table_file import Profile, load_table

EXAMPLES = ROOT / "examples"
TABLES = {
    "lwc_table3": ("lwc_transformer_small", "transformer_small", "transformer_context_gate"),
    "lwc_table1_de_en": ("lwc_local_small",),
    "lwc_table2_en_de": (
        *("lwc_transformer_base", "lwc_transformer_big", "lwc_local_big"),
        *("transformer_base", "transformer_big"),
    ),
    "deepatt_table5": ("deepatt", "udeepatt", "vdeepatt", "wideatt", "deepnmt", "mheadnmt", "rnnsearch"),
    "abd_table2": ("abd", "nsc_rt", "nsc_hs"),
}
CASES = [(table, preset) for table, presets in TABLES.items() for preset in presets]


def test_every_configuration_is_compared():
    assert {preset for _, preset in CASES} == {path.stem for path in (EXAMPLES / "configs").glob("*.yaml")}


@pytest.mark.parametrize(("table", "preset"), CASES)
def test_training_is_that_of_the_table(table, preset):
    settings = Settings(load_table(EXAMPLES / "tables" / f"{table}.yaml"), Profile(), "data", Path("out"))
    job = next(job for job in settings.jobs(1) if job.row.arch == preset)
    expected = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), job.train[1:]))
    found = yaml.safe_load((EXAMPLES / "configs" / f"{preset}.yaml").read_text())
    groups = ("optimization", "dataset")
    given = OmegaConf.merge(OmegaConf.structured(FairseqConfig), {group: found[group] for group in groups})
    for group in groups:
        assert dict(given[group]) == dict(expected[group])
    assert found["lr_scheduler"].items() <= dict(expected.lr_scheduler).items()
    metric = found["checkpoint"].get("best_checkpoint_metric", "loss")
    assert metric == expected.checkpoint.best_checkpoint_metric
    assert found["checkpoint"].get("maximize_best_checkpoint_metric", False) == (metric == "bleu")
    for option in ("eval_bleu", "eval_tokenized_bleu", "eval_bleu_args"):
        assert found["task"].get(option, getattr(TranslationConfig, option)) == getattr(expected.task, option)
