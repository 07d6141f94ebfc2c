#!/usr/bin/env bash
# Train the models of He et al. (2018), Table 1, on the data of prepare.sh, translate the test set and score it;
# started again, it resumes.
#
#   bash examples/iwslt14/train.sh de|ro|es [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  that of prepare.sh (default: runs/iwslt14-de and so on); models and the table go to its folder `table`
#
# As --rows lwc for LWC alone, --train="--fp16" for half precision, --dry-run to see the commands.
source "$(dirname "$0")/../recipe.sh"
language=${words[0]:-}
case $language in de | ro | es) ;; *) fail "usage: train.sh de|ro|es [--out FOLDER] [-- flags ...]" ;; esac
out=${out:-$PWD/runs/iwslt14-$language}
train_table "$root/examples/tables/lwc_table1_${language}_en.yaml"
