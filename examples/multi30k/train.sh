#!/usr/bin/env bash
# Train the rows of models.yaml on the data of prepare.sh, translate the test set and score it; started again, it resumes.
#
#   bash examples/multi30k/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  that of prepare.sh (default: runs/multi30k); models and the table go to its folder `table`
#
# As --rows lwc transformer for these alone, --seeds 3, --profile examples/multi30k/narrow.yaml for a CPU.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: train.sh [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/multi30k}
train_table "$root/examples/multi30k/models.yaml"
