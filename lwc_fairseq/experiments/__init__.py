"""Tables of runs: train, translate, score and compare every row of a paper's table."""
