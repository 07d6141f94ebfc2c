#!/usr/bin/env bash
# Set up .venv, run the linter, the type checker and the tests, with --all the long ones, too. Other arguments go to pytest:
#
#   bash tests/run.sh [--all] [-k mask]
#
# One process a core, each of which computes with one thread, takes one file of tests after the other.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

bash examples/setup_env.sh
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
if [ "${1:-}" = --all ]; then
  shift
  set -- -m "long or not long" -o faulthandler_timeout=7200 "$@"
fi
OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder "$@"
