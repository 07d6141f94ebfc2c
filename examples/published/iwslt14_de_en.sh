#!/usr/bin/env bash
# Translate the test set of IWSLT14 German-English with the model that Fonollosa et al. (2019) publish, and score it.
#
#   bash examples/published/iwslt14_de_en.sh [--from FOLDER|URL] [--out FOLDER] [-- more flags ...]
#
#   --from  a folder with the files, or a mirror (default: the release of jarfo/joint)
#   --out   default: runs/published-iwslt14_de_en
#   flags   go to fairseq-generate
source=de target=en lenpen=1.7 test_set=joint-iwslt14.31K.de-en.test.tgz room=1
. "$(dirname "$0")/recipe.sh"

model_and_data joint-iwslt_de_en.pt cat "$out/archives/joint-iwslt_de_en.pt"
translate_published "35.7 (Fonollosa et al., 2019)"
