"""What trained models do: their attention, and the word alignments that it amounts to."""
