"""Tables of runs: every row of a paper's table trained, translated, scored and compared."""
