"""Spans of memory: when they are needed, and that two which are needed at the same time never share a place."""

import numpy as np
import pytest

from rotorid.codegen.memory import Packed, Spans, live_ranges


def test_a_span_is_known_by_any_of_its_places_and_is_no_neighbour():
    spans = Spans()
    starts = [spans.reserve(size) for size in (3, 1, 0, 4)]
    assert [spans.of(starts[k] + i) for k, i in ((0, 0), (0, 2), (1, 0), (3, 0), (3, 3))] == [0, 0, 1, 2, 2]
    assert spans.sizes == [3, 1, 4]
    assert starts[1] > starts[0] + 3
    assert starts[3] > starts[1] + 1


def test_what_passes_the_border_of_a_loop_is_needed_in_all_turns():
    #           0    1        2    3       4    5       6    7       8
    used = [{0}, set(), {0, 1}, {2}, set(), {2, 3}, {1}, set(), {3}]
    found = live_ranges(used, [(4, 6), (1, 7)], 5)
    assert found[0] == (0, 7)  # before it and in it
    assert found[1] == (2, 6)  # in the outer loop alone, and in the inner one
    assert found[2] == (3, 6)
    assert found[3] == (1, 8)  # in the inner one and behind both
    assert found[4] == (0, -1)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_needed_at_the_same_time_has_places_of_its_own(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 60).tolist()
    first = rng.integers(0, 50, 60)
    alive = [(int(a), int(a + b)) for a, b in zip(first, rng.integers(0, 12, 60), strict=True)]
    packed = Packed(sizes, alive)
    for line in range(64):
        here = [k for k in range(60) if alive[k][0] <= line <= alive[k][1]]
        taken = np.concatenate([[], *(packed.places[k] + np.arange(sizes[k]) for k in here)])
        assert len(np.unique(taken)) == len(taken)
        more = packed.fit(7, (line, line))
        assert not np.isin(more + np.arange(7), taken).any()
    most = max(sum(sizes[k] for k in range(60) if alive[k][0] <= line <= alive[k][1]) for line in range(64))
    assert most <= packed.total <= 1.3 * most + 7
