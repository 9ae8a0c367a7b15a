#!/usr/bin/env python3
"""States that `crash run` judges a minute with two programs, by turns.

    docs/judge_speed.py BEFORE AFTER [--rounds N] [--only CASE] [-- MORE OPTIONS]

BEFORE and AFTER are builds of steadfast, or one with options (quote them: "steadfast crash run
--judge-files copied" needs only the options that differ, as "target/release/steadfast|--judge-files
copied"). Each round begins with the other one. Both record the program anew; the time is that of
the whole command less that of the same command without cuts. Printed are the medians over the rounds
with the least and the most, and what was found, which must be the same.

The cases are SQLite with its own integrity check, and PostgreSQL of the gallery, whose judge starts
the server and reads all records (`apt-get install postgresql`).
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GALLERY = os.path.join(HERE, "../gallery/postgresql")
ROWS = "".join(
    f"begin; insert into t values({n}, '{'x' * (50 + n * 37 % 900)}'); "
    f"update t set b = b || 'y' where a = {n * 7 % (n + 1)}; commit; select 'acknowledged {n}';"
    for n in range(100)
)
CASES = {
    "sqlite": {
        "cuts": "400",
        "options": ["--cuts", "400", "--states", "16"],
        "judge": "test ! -e db || sqlite3 db 'pragma integrity_check' | grep -qx ok",
        "program": ["sqlite3", "db", f"create table t(a integer primary key, b text); {ROWS}"],
    },
    "postgresql": {
        "cuts": "200",
        "options": ["--size", "512m", "--cuts", "200", "--states", "8",
                    "--setup", f"sh {GALLERY}/setup"],
        "judge": f"sh {GALLERY}/../records sh {GALLERY}/read synchronous_commit=on all",
        "program": ["sh", f"{GALLERY}/run", "synchronous_commit=on", "all"],
    },
}


def timed(build, case, more):
    steadfast, _, options = build.partition("|")
    command = [os.path.abspath(steadfast), "crash", "run", "--json", "--model", "none",
               *case["options"], *options.split(), *more, "--judge", case["judge"], "--",
               *case["program"]]
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL,
                       env={**os.environ, "GALLERY": GALLERY})
        took = time.monotonic() - began
        out.seek(0)
        return took, json.load(out)


def run(build, case, more):
    took, found = timed(build, case, more)
    uncut = ["none" if word == case["cuts"] else word for word in case["options"]]
    took -= timed(build, {**case, "options": uncut}, more)[0]
    judge = found.get("judge") or {}
    return {
        "states a minute": found["states"] / took * 60,
        "states": found["states"],
        "trees": found["trees"],
        "judges run": judge.get("runs", found["judged"]),
        "findings": len(found["findings"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("more", nargs="*")
    args = parser.parse_args()
    for name, case in CASES.items():
        if args.only and name not in args.only:
            continue
        runs = {"before": [], "after": []}
        for number in range(args.rounds):
            order = [("before", args.before), ("after", args.after)]
            for which, build in order[:: 1 if number % 2 == 0 else -1]:
                runs[which].append(run(build, case, args.more))
        for which, of in runs.items():
            print(f"{name:11} {which:7}", end="")
            for key in of[0]:
                values = sorted(round(one[key]) for one in of)
                middle = statistics.median_low(values)
                spread = f" ({values[0]}..{values[-1]})" if values[0] != values[-1] else ""
                print(f"  {key} {middle}{spread}", end="")
            print(flush=True)
        of = [statistics.median(one["states a minute"] for one in runs[w]) for w in runs]
        print(f"{name:11} after / before: {of[1] / of[0]:.2f}", flush=True)


main()
