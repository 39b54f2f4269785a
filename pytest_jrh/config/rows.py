"""The rows of a table that RAND's harness draws."""

from __future__ import annotations

_SEED = 8234


def drawn(total: int, number: int, *, again: bool = False) -> list[int]:
    """So many of the numbers from 0 to `total`, in the order in which they are drawn, all for 0;
    `again` draws with replacement.

    RAND draws by pandas, which asks numpy's legacy generator, and always with one seed, whatever
    seed the config names.
    """
    # Late: only a config of RAND's draws like this.
    import numpy as np

    if number <= 0:
        return list(range(total))
    size = number if again else min(number, total)
    rows: list[int] = np.random.RandomState(_SEED).choice(total, size, replace=again).tolist()
    return rows
