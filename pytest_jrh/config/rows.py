"""The rows of a table that RAND's harness draws."""

from __future__ import annotations

import random

_SEED = 8234


def drawn(total: int, number: int, *, again: bool = False) -> list[int]:
    """So many of the numbers from 0 to `total`, in the order in which they are drawn, all for 0;
    `again` draws with replacement.

    RAND draws by pandas, whose seed makes another state of the Mersenne Twister than Python's
    (Matsumoto and Nishimura 2002, `init_genrand`), whatever seed the config names.
    """
    if number <= 0:
        return list(range(total))
    state = [_SEED]
    for place in range(1, 624):
        before = state[-1]
        state.append((1_812_433_253 * (before ^ (before >> 30)) + place) % 2**32)
    twister = random.Random()  # noqa: S311 - reproducible, not secret
    twister.setstate((3, (*state, 624), None))

    def below(limit: int) -> int:
        # As many bits as the limit has, and again where they are more.
        while (value := twister.getrandbits(32) % (1 << limit.bit_length())) > limit:
            pass
        return value

    if again:
        return [below(total - 1) for _ in range(number)]
    rows = list(range(total))
    for last in range(total - 1, 0, -1):
        other = below(last)
        rows[last], rows[other] = rows[other], rows[last]
    return rows[:number]
