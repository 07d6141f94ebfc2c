from lwc_fairseq.modules.row_groups import group_rows


def test_group_rows():
    assert group_rows([0, 0, 0, 1, 1, 1], beam=1) == ([0, 1], 3)  # sentences repeated for a beam
    assert group_rows([2, 0, 0, 5, 3, 4], beam=3) == ([0, 1], 3)  # hypotheses reordered within theirs
    assert group_rows([5, 5, 3], beam=3) == ([1], 3)  # the first sentence is finished
    assert group_rows([0, 1, 2], beam=1) == ([0, 1, 2], 1)
    assert group_rows([3, 0, 1, 2], beam=2) == ([1, 0, 0, 1], 1)  # an order that no beam search makes
    assert group_rows([0, 1, 2, 3], beam=4) == ([0], 4)
    assert group_rows([], beam=4) == ([], 4)
