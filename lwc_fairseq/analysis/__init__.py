"""Analysis of trained models: their translations, their attention, and word alignments from attention."""
