#!/usr/bin/env bash
# Set up .venv, run the linter and the tests. Arguments go to pytest: bash tests/run.sh -k mask
set -euo pipefail
cd "$(dirname "$0")/.."

bash examples/setup_env.sh
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/python -m pytest "$@"
