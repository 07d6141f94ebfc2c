#!/usr/bin/env bash
# Train the models of He et al. (2018), Table 1, on the data of prepare.sh, translate the test set and score it. The
# same command resumes an interrupted run. Each model but those "as in 2018" is first trained three times, with dropout
# 0.1, 0.2 and 0.3, to choose one of them.
#
#   bash examples/iwslt14/train.sh de|ro|es [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/iwslt14-de and so on); models and the table go to its folder
#          `table`
#
# Useful flags: --rows lwc (only LWC), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
language=${words[0]}
case $language in de | ro | es) ;; *) usage ;; esac
out=${out:-$PWD/runs/iwslt14-$language}

train_table "$root/examples/tables/lwc_table1_${language}_en.yaml"
