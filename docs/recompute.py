#!/usr/bin/env python3
"""Counts figures of a run again, from what `lab run --record DIR` has written.

Usage: recompute.py DIR   (standard library only; exit status 1 if a figure cannot be so)
"""
import json
import pathlib
import statistics
import sys


def rows(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def upper_bound(events, cuts):
    """Of a rate at 95 %, in per cent: 3 / n for no event, else Clopper and Pearson."""
    if events == 0 or events == cuts:
        return min(300 / cuts, 100.0) if events == 0 else 100.0
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        one = total = (1 - rate) ** cuts
        for k in range(events):
            one *= (cuts - k) / (k + 1) * rate / (1 - rate)
            total += one
        low, high = (rate, high) if total > 0.05 else (low, rate)
    return high * 100


def unsynced(writes, tick):
    """Bytes of the calls that had returned when the power went, and of those not promised."""
    done = [w for w in writes if w["returned"] and w["returned"]["tick"] < tick]
    kept = [w for w in done if w["durable"] and w["durable"]["tick"] < tick]
    total = sum(w["bytes"] for w in done)
    return total, total - sum(w["bytes"] for w in kept)


def count(folder):
    cuts, writes = rows(folder / "cuts.jsonl"), rows(folder / "writes.jsonl")
    if not cuts:
        print(f"{folder.parent.name}/{folder.name}: no cuts")
        return True
    broken = [c for c in cuts if c["broken_promises"] > 0]
    # Cuts at one place are one trial.
    places, bad = len({c["place"] for c in cuts}), len({c["place"] for c in broken})
    lost = sorted(c["lost_bytes"] for c in cuts)
    tail = lost[-(-len(lost) * 99 // 100) - 1] if len(lost) >= 400 else lost[-1]
    name = "p99" if len(lost) >= 400 else f"max of {len(lost)}"
    print(f"{folder.parent.name}/{folder.name}: {len(cuts)} cuts at {places} places")
    print(f"  cuts with broken promises: {len(broken)} (<={upper_bound(bad, places):.3g} %)")
    print(f"  lost bytes: p50 {statistics.median_low(lost)}, {name} {tail}")
    # Where no promise was broken, nothing can be lost but what was not promised: another way to
    # the figure, from the calls alone. A file may be lost with its name, though it was synced.
    named = any(w["file"].startswith("object ") for w in writes)
    impossible = 0
    for cut in cuts:
        done, open_ = unsynced(writes, cut["tick"])
        limit = done if named or cut["broken_promises"] else open_
        impossible += cut["lost_bytes"] > limit
    print(f"  cuts that lost more than they could: {impossible}")
    return impossible == 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/*/cuts.jsonl"))
    if not found:
        sys.exit(f"{sys.argv[1]}: no recording of a run that was cut (SEED/VARIANT/cuts.jsonl)")
    sys.exit(0 if all([count(folder) for folder in found]) else 1)
