#!/usr/bin/env bash
# Try everything on a GPU: the installation, the CUDA tests, training in each precision beside a CPU, speed, peak memory,
# kernel launches, and two GPUs if there are two. It writes one page of results.
#
#   bash examples/cuda/verify.sh [--quick] [--only STEP,...] [--out FOLDER]
#
#   --quick        fewer precisions and batch sizes: about 5 minutes on one GPU instead of 20
#   --only STEPS   only the steps whose names contain one of these words, such as doctor or lwc,abd
#   --out FOLDER   where everything goes (default: runs/cuda)
#
# The page is FOLDER/report.md, and FOLDER/report.html with the same content; both grow after each step. The same command
# again keeps the steps that succeeded and repeats those that failed. It ends with status 1 if a step failed. Without a
# GPU it runs tiny models on the tests' simulated device, and says so in every line of results. Only the set-up of .venv
# needs the network; an environment that has lwc_fairseq installed is taken as it is.
source "$(dirname "$0")/../recipe.sh"
program=verify sets_up=1 quick='' only=''
parse '--quick --only= --out=' "$@"
[ ${#words[@]} = 0 ] || usage
cd "$root"

ready() { python -c 'import lwc_fairseq' 2> /dev/null && command -v lwc-fairseq && command -v fairseq-train; }
ready > /dev/null || bash examples/setup_env.sh || fail "stopped while setting up"
exec python examples/cuda/verify.py --out "${out:-runs/cuda}" ${quick:+--quick} ${only:+--only "$only"}
