# SPDX-License-Identifier: Apache-2.0
"""Waits for conditions, and says what was awaited."""
import time


def wait_until(what, holds, seconds=30):
    """Returns the first true value of holds()."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = holds()
        if value:
            return value
        time.sleep(0.002)
    raise AssertionError(f"waited {seconds} s in vain until {what}")
