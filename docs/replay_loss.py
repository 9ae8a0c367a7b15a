#!/usr/bin/env python3
"""Whether a replayed trace finds the losses that the program itself has.

Four programs, with their syncs and without, on a disk with a write cache and on one that ignores
flushes: each is cut by `crash run`, with a judge that knows what the program has printed, and its
trace by `lab compare`. Prints both verdicts; status 1 if they differ anywhere.

    python3 docs/replay_loss.py STEADFAST

A replay says "lost" where a promise was broken, or where the program syncs nothing and calls that
had returned are gone.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

STACKS = """version = 2
name = "loss"
title = "A disk with a write cache"
[device.disk]
kind = "hdd"
sectors = 2097152
[device.liar]
kind = "hdd"
write_cache = "lying"
sectors = 2097152
[[variant]]
name = "honest"
label = "flushes"
disk = "disk"
mount = "data=ordered"
[[variant]]
name = "lying"
label = "ignores flushes"
disk = "liar"
mount = "data=ordered"
"""

# What `crash run` wants beside the stacks of a scenario.
WORKLOAD = """
[workload]
cuts = 1
[workload.files]
"""

# Each prints what it has done when that is to be durable. SYNC is 1 or 0.
LOG = r"""
import os
f = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
SYNC and os.fsync(os.open(".", os.O_RDONLY))
for n in range(40):
    os.write(f, b"%07d\n" % n * 100)
    SYNC and os.fsync(f)
    print(n, flush=True)
"""
LOG_JUDGE = r"""
import os
text = open("log", "rb").read() if os.path.exists("log") else b""
for n in map(int, open(os.environ["STEADFAST_PRINTED"])):
    assert text[n * 800:][:800] == b"%07d\n" % n * 100, n
"""
RENAME = r"""
import os
d = os.open(".", os.O_RDONLY)
for n in range(40):
    f = os.open("new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(f, b"%07d\n" % n * 500)
    SYNC and os.fsync(f)
    os.close(f)
    os.rename("new", "file")
    SYNC and os.fsync(d)
    print(n, flush=True)
"""
RENAME_JUDGE = r"""
import os
printed = [int(n) for n in open(os.environ["STEADFAST_PRINTED"])]
if printed:
    text = open("file", "rb").read()
    assert len(text) == 4000 and text == text[:8] * 500, "torn"
    assert int(text[:7]) >= printed[-1], "old"
"""
MAIL = r"""
import os
for name in ("tmp", "new"):
    os.mkdir(name)
d = os.open("new", os.O_RDONLY)
top = os.open(".", os.O_RDONLY)
SYNC and os.fsync(top)
for n in range(40):
    f = os.open(f"tmp/{n}", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    os.write(f, b"%07d\n" % n * 200)
    SYNC and os.fsync(f)
    os.close(f)
    os.rename(f"tmp/{n}", f"new/{n}")
    SYNC and os.fsync(d)
    print(n, flush=True)
"""
MAIL_JUDGE = r"""
import os
for n in map(int, open(os.environ["STEADFAST_PRINTED"])):
    assert open(f"new/{n}", "rb").read() == b"%07d\n" % n * 200, n
"""
SQLITE = r"""
import sqlite3
db = sqlite3.connect("db", isolation_level=None)
db.execute("pragma synchronous = " + ("extra" if SYNC else "off"))
db.execute("create table t(n, text)")
for n in range(40):
    db.execute("insert into t values(?, ?)", (n, "x" * 300))
    print(n, flush=True)
"""
SQLITE_JUDGE = r"""
import os, sqlite3
printed = len(open(os.environ["STEADFAST_PRINTED"]).readlines())
if printed:
    db = sqlite3.connect("db")
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)], "corrupt"
    assert db.execute("select count(*) from t").fetchone()[0] >= printed, "rows are gone"
"""
PROGRAMS = [("append-only log", LOG, LOG_JUDGE), ("rename", RENAME, RENAME_JUDGE),
            ("mail folder", MAIL, MAIL_JUDGE), ("sqlite", SQLITE, SQLITE_JUDGE)]


def main():
    steadfast = os.path.abspath(sys.argv[1])
    work = tempfile.mkdtemp(prefix="replay-loss-")
    os.chdir(work)
    with open("stacks.toml", "w") as f:
        f.write(STACKS)
    with open("scenario.toml", "w") as f:
        f.write(STACKS + WORKLOAD)
    differs = False
    print(f"{'program':17}{'syncs':7}{'stack':8}{'crash run':>10}{'replay':>8}{'broken':>8}"
          f"{'lost calls':>12}")
    for name, program, judge in PROGRAMS:
        with open("judge.py", "w") as f:
            f.write(judge)
        for syncs in (1, 0):
            command = ["python3", "-c", f"SYNC = {syncs}\n{program}"]
            os.mkdir("at")
            record = [steadfast, "trace", "record", "-o", "t.trace", "--folder", "at", "--"]
            subprocess.run(record + command, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            shutil.rmtree("at")
            for stack in ("honest", "lying"):
                own = subprocess.run(
                    [steadfast, "crash", "run", "--json", "--model", "none",
                     "--stack", f"scenario.toml:{stack}", "--cuts", "60", "--linger", "1", "--judge", f"python3 {work}/judge.py",
                     "--record", "r.record", "--"] + command,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if own.returncode not in (0, 1):
                    sys.exit(own.stderr.decode())
                compare = [steadfast, "lab", "compare", "--trace", "t.trace", "--stacks",
                           "stacks.toml", "--only", stack, "--seeds", "1", "--cuts", "60",
                           "--json", "-"]
                out = subprocess.run(compare, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                row = json.loads(out.stdout)["stacks"][0]
                gone = row["syncs"] == 0 and row["lost_calls"] > 0
                lost = (own.returncode == 1, row["broken_promises"] > 0 or gone)
                own, replayed = ("lost" if one else "kept" for one in lost)
                differs |= lost[0] != lost[1]
                print(f"{name:17}{'yes' if syncs else 'no':7}{stack:8}{own:>10}{replayed:>8}"
                      f"{row['broken_promises']:8.0f}{row['lost_calls']:12.0f}", flush=True)
    shutil.rmtree(work)
    print("the verdicts differ" if differs else "the verdicts are the same in all rows")
    sys.exit(1 if differs else 0)


main()
