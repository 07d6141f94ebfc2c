"""The pages that users read: their links lead somewhere, their options and defaults are the code's."""

import dataclasses

import pytest
from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.tasks.translation import TranslationConfig
from pages import every_page, headings, links, option_tables

from conftest import ROOT
from lwc_fairseq.criterions.bidirectional_cross_entropy import BidirectionalCrossEntropyConfig
from lwc_fairseq.optim import RMSpropConfig
from lwc_fairseq.tasks.concat_translation import ConcatTranslationConfig

TABLES = option_tables(ROOT / "docs" / "models.md")
CONFIGURATIONS = {
    "lwc_transformer": MODEL_DATACLASS_REGISTRY["lwc_transformer"],
    "deepatt": MODEL_DATACLASS_REGISTRY["deepatt"],
    "abd": MODEL_DATACLASS_REGISTRY["abd"],
    "concat_translation": ConcatTranslationConfig,
    "bidirectional_cross_entropy": BidirectionalCrossEntropyConfig,
    "rmsprop": RMSpropConfig,
}


@pytest.mark.parametrize("page", every_page(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for file, heading in links(page):
        assert file.exists(), file
        assert not heading or heading in headings(file), f"{file}#{heading}"


def own_options(configuration: type) -> dict[str, object]:
    """Names and defaults of the options that a configuration adds to fairseq's."""
    inherited = {field.name for base in (FairseqDataclass, TranslationConfig) for field in dataclasses.fields(base)}
    return {
        field.name.replace("_", "-"): field.default
        for field in dataclasses.fields(configuration)
        if field.name not in inherited and not str(field.default).startswith("${")
    }


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_table_has_every_option_with_its_default(name):
    defaults = own_options(CONFIGURATIONS[name])
    assert set(TABLES[name]) == set(defaults)
    for option, printed in TABLES[name].items():
        default = defaults[option]
        if isinstance(default, bool) or default is None:
            assert printed == ("none" if default is None else "on" if default else "off"), option
        else:
            assert printed == default or float(printed) == default, option


def test_nsc_adds_what_its_table_has():
    """The page describes the other options of `nsc_rt` and `nsc_hs` with those of `abd`."""
    nsc, abd = own_options(MODEL_DATACLASS_REGISTRY["nsc_hs"]), own_options(MODEL_DATACLASS_REGISTRY["abd"])
    assert set(TABLES["nsc_hs"]) == set(nsc) - set(abd)
    assert set(abd) - set(nsc) == {"share-all-embeddings", "init-backward-from", "reverse-context"}
