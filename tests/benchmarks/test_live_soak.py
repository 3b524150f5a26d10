"""The soak, short: six seconds of it, with the vehicle four times as fast."""

from __future__ import annotations

from pathlib import Path

from benchmarks.live_soak import soak


def test_a_session_survives_hostile_messages(tmp_path: Path) -> None:
    """The growth of the memory shows in minutes only. Writes are 2 s of the vehicle's clock apart; arrival varies by 0.25 s."""
    result = soak(6.0, tmp_path, speed=4.0)
    assert result.failures(most_growth=50.0, least_interval=1.0) == []
    assert result.hostile > 2500
    assert len(result.errors) > 100
    assert "also sends from" in result.output
