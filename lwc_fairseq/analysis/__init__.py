"""What trained models do: their translations, their attention, and the word alignments that follow from it."""
