import fairseq  # noqa: F401 (registers everything here, before a file of this folder is imported alone)
