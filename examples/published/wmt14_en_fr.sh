#!/usr/bin/env bash
# Translate newstest2014 English-French with the model that Fonollosa et al. (2019) publish in two parts, and score it.
#
#   bash examples/published/wmt14_en_fr.sh [--from FOLDER|URL] [--out FOLDER] [-- more flags ...]
#
#   --from  a folder with the files, or a mirror (default: the release of jarfo/joint)
#   --out   default: runs/published-wmt14_en_fr
#   flags   go to fairseq-generate
source=en target=fr lenpen=0.9 test_set=joint-wmt14_en_fr.test.tgz room=7
. "$(dirname "$0")/recipe.sh"

parts=$out/archives/joint-wmt_en_fr_big.pt
model_and_data "joint-wmt_en_fr_big.pt_aa joint-wmt_en_fr_big.pt_ab" cat "${parts}_aa" "${parts}_ab"
translate_published "43.3 (Fonollosa et al., 2019)"
