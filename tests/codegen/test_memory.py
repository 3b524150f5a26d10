"""Spans of memory: when they are needed, and that two which are needed at the same time never share a place."""

import numpy as np
import pytest

from rotorid.codegen.memory import Packed, Spans, live_ranges


def test_span_at_any_address_and_gap_between_spans():
    spans = Spans()
    starts = [spans.reserve(size) for size in (3, 1, 0, 4)]
    assert [spans.span_at(starts[k] + i) for k, i in ((0, 0), (0, 2), (1, 0), (3, 0), (3, 3))] == [
        0,
        0,
        1,
        2,
        2,
    ]
    assert spans.sizes == [3, 1, 4]
    assert starts[1] > starts[0] + 3
    assert starts[3] > starts[1] + 1


def test_a_span_used_inside_and_outside_of_a_loop_is_live_in_all_iterations():
    #           0    1        2    3       4    5       6    7       8
    spans_of_lines = [{0}, set(), {0, 1}, {2}, set(), {2, 3}, {1}, set(), {3}]
    ranges = live_ranges(spans_of_lines, [(4, 6), (1, 7)], 5)
    assert ranges[0] == (0, 7)  # before it and in it
    assert ranges[1] == (2, 6)  # in the outer loop alone, and in the inner one
    assert ranges[2] == (3, 6)
    assert ranges[3] == (1, 8)  # in the inner one and behind both
    assert ranges[4] == (0, -1)


@pytest.mark.parametrize("seed", range(5))
def test_spans_that_are_live_at_the_same_time_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 60).tolist()
    first = rng.integers(0, 50, 60)
    live = [(int(a), int(a + b)) for a, b in zip(first, rng.integers(0, 12, 60), strict=True)]
    packed = Packed(sizes, live)
    for line in range(64):
        spans = [k for k in range(60) if live[k][0] <= line <= live[k][1]]
        addresses = np.concatenate([[], *(packed.addresses[k] + np.arange(sizes[k]) for k in spans)])
        assert len(np.unique(addresses)) == len(addresses)
        extra = packed.fit(7, (line, line))
        assert not np.isin(extra + np.arange(7), addresses).any()
    largest_sum = max(
        sum(sizes[k] for k in range(60) if live[k][0] <= line <= live[k][1]) for line in range(64)
    )
    assert largest_sum <= packed.total <= 1.3 * largest_sum + 7
