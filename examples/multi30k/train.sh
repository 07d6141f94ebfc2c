#!/usr/bin/env bash
# Train the rows of models.yaml on the data of prepare.sh, translate the test set and score it. The same command resumes
# an interrupted run.
#
#   bash examples/multi30k/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/multi30k); models and the table go to its folder `table`
#
# Useful flags: --rows lwc transformer (only these rows), --seeds 3, --profile examples/multi30k/narrow.yaml (for a
# CPU).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/multi30k}

train_table "$root/examples/multi30k/models.yaml"
