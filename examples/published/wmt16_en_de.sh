#!/usr/bin/env bash
# Translate newstest2014 English-German with the model that Fonollosa et al. (2019) publish, and score it as they do:
# after splitting words with hyphens.
#
#   bash examples/published/wmt16_en_de.sh [--from FOLDER|URL] [--out FOLDER] [-- more flags ...]
#
#   --from  a folder with the files, or a mirror (default: the release of jarfo/joint)
#   --out   default: runs/published-wmt16_en_de
#   flags   go to fairseq-generate
source=en target=de lenpen=0.35 test_set=joint-wmt16_en_de_bpe32k.test.tgz room=5
. "$(dirname "$0")/recipe.sh"

model_and_data joint-wmt_en_de_big.pt.bz2 bunzip2 --stdout "$out/archives/joint-wmt_en_de_big.pt.bz2"
split_compounds=1
translate_published "29.7 (Fonollosa et al., 2019)"
