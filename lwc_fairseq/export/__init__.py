"""Models as folders that translate without PyTorch and fairseq: ONNX graphs, a vocabulary and a program."""
