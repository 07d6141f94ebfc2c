from setuptools import find_packages, setup

DATA = {
    "lwc_fairseq.tables": "examples/tables",
    "lwc_fairseq.tables.profiles": "examples/tables/profiles",
    "lwc_fairseq.configs": "examples/configs",
}
"""Folders of the checkout that the package contains: `lwc-fairseq table lwc_table3` works without a checkout."""

setup(  # the rest stands in pyproject.toml, where packages are either found or listed
    packages=[*find_packages(include=["lwc_fairseq", "lwc_fairseq.*", "lwc_fairseq_compat"]), *DATA],
    package_dir=DATA,
    package_data={"": ["*.yaml", "*.html", "*.js", "py.typed"], "lwc_fairseq.export": ["README.md"]},
)
