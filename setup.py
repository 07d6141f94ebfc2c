import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / "lwc_fairseq" / "__init__.py").read_text("utf-8"))[1]
DATA = {"lwc_fairseq.tables": "examples/tables", "lwc_fairseq.configs": "examples/configs"}
"""Folders of the checkout that the package contains: `lwc-fairseq table lwc_table3` works without a checkout."""

setup(
    name="lwc_fairseq",
    version=VERSION,
    description="Neural machine translation models from papers, for fairseq on current Python and PyTorch",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    keywords="fairseq, machine translation, Transformer, recurrent neural network, attention, bidirectional decoding",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
    license="MIT",
    python_requires=">=3.11",
    packages=[
        *find_packages(include=["lwc_fairseq", "lwc_fairseq.*", "lwc_fairseq_compat"]),
        *DATA,
    ],
    package_dir=DATA,
    package_data={"lwc_fairseq.tables": ["*.yaml", "profiles/*.yaml"], "lwc_fairseq.configs": ["*.yaml"]},
    # fairseq 0.12.2 is not listed, because its own requirements no longer install. Install it without them
    # (pip install --no-deps fairseq==0.12.2); what it needs for text is listed below.
    install_requires=[
        "torch>=2.6",
        "numpy>=2",
        "hydra-core>=1.3,<1.4",
        "omegaconf>=2.3,<2.4",
        "PyYAML",
        "sacrebleu>=2.4",
        "subword-nmt>=0.3.8",
        "bitarray",
        "regex",
        "sacremoses",
        "tqdm",
        "matplotlib>=3.11",  # it lays out Arabic and Hebrew
        "packaging",
    ],
    extras_require={
        "sentencepiece": ["sentencepiece>=0.2"],
        "completion": ["shtab"],  # lwc-fairseq --print-completion
        "test": [
            "build",
            "hypothesis",
            "pytest>=8",
            "pytest-xdist",
            "ruff",
            "sentencepiece",
            "setuptools",
            "shtab",
            "tensorboardX",
        ],
        # What unbabel-comet 2.2.7 needs. It is not listed itself, because its own requirements exclude NumPy 2, with
        # which it works. Install it without them: pip install --no-deps unbabel-comet
        "comet": [
            "entmax",
            "huggingface-hub<1",
            "pandas",
            "protobuf",
            "pytorch-lightning>=2,<3",
            "scipy",
            "sentencepiece>=0.2",
            "torchmetrics>=1",
            "transformers<5",
        ],
    },
    entry_points={
        "torch.backends": ["lwc_fairseq_compat = lwc_fairseq_compat:activate"],
        "console_scripts": ["lwc-fairseq = lwc_fairseq.cli:main"],
    },
)
