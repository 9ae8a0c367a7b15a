#!/usr/bin/env python3
"""fio and `steadfast fio` by turns: ten of fio's own example job files, in one folder.

    docs/fio_beside.py FOLDER [--steadfast PROGRAM] [--examples FOLDER] [--rounds N]
                       [--seconds S] [--size SIZE] [--only EXAMPLE]

The examples are those of Debian's package fio-examples. Each is run as it is, but for these
lines: the engine is psync (and the depth 1), files are in FOLDER and of SIZE together, a section
runs for S seconds, the figures of a group are added up. Of each section and kind of requests the
median over the rounds is printed, with the least and the most, and the difference of the
medians. Who begins changes from round to round. Exit status 1: a difference is over 15 %.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

EXAMPLES = [
    "aio-read", "backwards-read", "fio-rand-RW", "fio-rand-read", "fio-rand-write", "fio-seq-read",
    "fsx", "iometer-file-access-server", "rand-zones", "tiobench-example",
]
# What is said by us instead.
LEFT_OUT = {
    "ioengine", "iodepth", "filename", "directory", "size", "runtime", "timeout", "time_based",
    "loops", "group_reporting", "name",
}
LIMIT = 15.0


def adapted(text, size, seconds):
    """The job file, with our lines in a first [global]."""
    ours = ["[global]", "ioengine=psync", f"size={size}", f"runtime={seconds}", "time_based=1",
            "group_reporting=1", "filename_format=fio_beside.$jobnum"]
    kept = []
    for line in text.splitlines():
        line = line.split(";")[0].split("#")[0].strip()
        if line and line.split("=")[0].strip() not in LEFT_OUT:
            kept.append(line)
    return "\n".join(ours + kept) + "\n"


def run(program, job, folder):
    """Figures by section and kind: requests a second, p50 and p99 in us."""
    words = program + ["--output-format=json", str(job)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    document = json.loads(done.stdout[done.stdout.index("{"):])
    figures = {}
    for entry in document["jobs"]:
        for kind in ("read", "write"):
            of = entry[kind]
            if of["total_ios"]:
                times = of["clat_ns"]["percentile"]
                name = (entry["jobname"], kind)
                figures[name] = (of["iops"], times["50.000000"] / 1e3, times["99.000000"] / 1e3)
    return figures


def shown(values):
    def one(value):
        return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return f"{one(median(values))} ({one(min(values))}-{one(max(values))})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder")
    parser.add_argument("--steadfast", default="target/release/steadfast")
    parser.add_argument("--examples", default="/usr/share/doc/fio/examples")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--size", default="128m")
    parser.add_argument("--only", action="append", help="only this example")
    args = parser.parse_args()
    programs = {"fio": ["fio"], "steadfast": [os.path.abspath(args.steadfast), "fio"]}
    print("| job file | section | figure | fio: median (least-most) | steadfast fio | difference |")
    print("|---|---|---|---:|---:|---:|")
    over = 0
    for name in args.only or EXAMPLES:
        text = (Path(args.examples) / f"{name}.fio").read_text()
        seen = {who: {} for who in programs}
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            job = Path(folder) / f"{name}.fio"
            seconds = f"{round(args.seconds * 1000)}ms"
            job.write_text(adapted(text, args.size, seconds))
            # Lays the files out.
            run(programs["fio"], job, folder)
            for number in range(args.rounds):
                turns = list(programs.items())
                for who, program in turns if number % 2 == 0 else reversed(turns):
                    for key, of in run(program, job, folder).items():
                        seen[who].setdefault(key, []).append(of)
        for (section, kind), theirs in seen["fio"].items():
            ours = seen["steadfast"][section, kind]
            for at, what in enumerate(("requests/s", "p50 us", "p99 us")):
                both = [[of[at] for of in all_of] for all_of in (theirs, ours)]
                off = (median(both[1]) / median(both[0]) - 1) * 100
                over += abs(off) > LIMIT
                mark = " **" if abs(off) > LIMIT else ""
                print(f"| {name} | {section} {kind} | {what} | {shown(both[0])} |"
                      f" {shown(both[1])} | {off:+.1f} %{mark} |", flush=True)
    print(f"\n{over} figures differ by more than {LIMIT:.0f} %", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
