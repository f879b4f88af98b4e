"""How far a server's clock is from ours, and a worker's from the database's, in one sentence each."""

from evalboard.wording.numbers import fixed


def describe_clock(ahead: tuple[float, float]) -> str:
    """Say how far the server's clock is ahead or behind, as its answers show."""
    low, high = ahead
    if low > high:
        return f"The server has several clocks, or one that was set: from {_seconds(high)} to {_seconds(low)}."
    if low <= 0 <= high:
        return f"The server's clock agrees with ours within {fixed(max(-low, high), 1)} s."
    near, far = sorted((abs(low), abs(high)))
    return f"The server's clock is {fixed(near, 1)} to {fixed(far, 1)} s {'ahead of' if low > 0 else 'behind'} ours."


def describe_worker_clock(ahead: float) -> str:
    """Say by how much the worker's own clock was ahead or behind, which nothing was dated by."""
    return f"{_seconds(ahead)}; the times here are the database's"


def _seconds(ahead: float) -> str:
    return f"{fixed(abs(ahead), 1)} s {'behind' if ahead < 0 else 'ahead'}"
