"""What the drivers in Python have in common.

A driver is called as `driver.py write SETTING KEPT`, which writes records 1 to COUNT and prints
each one's number when it is acknowledged, and as `driver.py read SETTING KEPT`, which prints those
that are left.
"""

import sys
import time

COUNT = 25


def value(n):
    """What record n holds."""
    return b"%d " % n * 1000


def main(write, read):
    """`write(setting)` yields the numbers acknowledged; `read()` the pairs that are left."""
    word, setting, kept = sys.argv[1:]
    if word == "write":
        for n in write(setting):
            print(n, flush=True)
            # What is not synced, the file system writes after seconds: then there is still more.
            time.sleep(0.25 if kept == "some" else 0)
        return
    for n, left in read():
        print(n if left == value(n) else f"{n} with another value")
