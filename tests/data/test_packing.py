import torch

from conftest import PAD, random_batch
from lwc_fairseq.data.packing import pack, pad_rows

LENGTHS = [(3, 2), (1, 4), (5, 1)]


def test_stream_holds_each_source_then_its_target():
    src, prev = torch.tensor([[PAD, 5, 2], [6, 7, 2]]), torch.tensor([[2, 8, 9], [2, 4, PAD]])
    packing = pack(src, prev, PAD)
    assert packing.tokens.tolist() == [5, 2, 2, 8, 9, 6, 7, 2, 2, 4]
    assert packing.positions.tolist() == [0, 1, 0, 1, 2, 0, 1, 2, 0, 1]
    assert packing.sides.tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 1, 1]
    assert packing.target_rows.tolist() == [2, 3, 4, 8, 9]
    assert packing.source_lengths.tolist() == [2, 3]
    assert packing.offsets.tolist() == [0, 5, 10]
    assert (packing.length, packing.source_length) == (5, 3)


def test_slots_lead_back_to_the_padded_tensors():
    for left_pad_source in (True, False):
        src, prev = random_batch(LENGTHS, left_pad_source=left_pad_source)
        packing = pack(src, prev, PAD)
        source = pad_rows(packing.tokens[packing.sides == 0], packing.source_slots, 3, packing.source_width)
        target = pad_rows(packing.tokens[packing.target_rows], packing.target_slots, 3, packing.target_width)
        assert torch.equal(source, src * src.ne(PAD))
        assert torch.equal(target, prev * prev.ne(PAD))


def test_sentence_slots_lay_each_pair_out_from_the_left():
    src, prev = random_batch(LENGTHS)
    packing = pack(src, prev, PAD)
    pairs = pad_rows(packing.tokens, packing.sentence_slots, 3, packing.length)
    for row, (n, m) in zip(pairs, LENGTHS, strict=True):
        assert row[: n + m].all() and not row[n + m :].any()


def test_padding_side_does_not_matter():
    left, right = (pack(*random_batch(LENGTHS, left_pad_source=side), PAD) for side in (True, False))
    for name in ("tokens", "positions", "sides", "target_rows", "sentence_slots", "target_slots"):
        assert torch.equal(getattr(left, name), getattr(right, name)), name


def test_sources_alone():
    src, _ = random_batch(LENGTHS)
    packing = pack(src, src[:, :0], PAD)
    assert packing.tokens.numel() == sum(n for n, _ in LENGTHS)
    assert packing.target_rows.numel() == packing.target_width == 0
    assert packing.length == packing.source_length == 5
