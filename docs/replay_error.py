#!/usr/bin/env python3
"""How far a replay's time is from that of the program itself.

By turns, records programs in the first folder, and runs each in every folder and replays its
trace there. Prints per program and folder the median of both and the error of the replay.

    python3 docs/replay_error.py STEADFAST ROUNDS FOLDER [FOLDER ...]

The folders are on the file systems that are compared; each run has a folder of its own below one.
Programs that are not installed are left out, and named.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = "".join(f"insert into t values({n}, randomblob(100));" for n in range(1000))
MAIL = r"""
import os, threading
def deliver(task):
    for n in range(25):
        name = f"{task}.{n}"
        with open(f"tmp/{name}", "wb") as f:
            f.write(os.urandom(3000))
            f.flush()
            os.fsync(f.fileno())
        os.rename(f"tmp/{name}", f"new/{name}")
        folder = os.open("new", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
os.mkdir("tmp"); os.mkdir("new")
tasks = [threading.Thread(target=deliver, args=(t,)) for t in range(8)]
[t.start() for t in tasks]; [t.join() for t in tasks]
"""
REDIS = """
redis-server --port 0 --unixsocket $0.s --appendonly yes --appendfsync always --save '' --dir . \\
    > /dev/null &
until redis-cli -s $0.s ping 2> /dev/null | grep -q PONG; do sleep 0.01; done
redis-benchmark -q -s $0.s -t set -n 1000 -c 4 -d 100
redis-cli -s $0.s shutdown nosave
wait
"""
POSTGRES = """
export PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
initdb -D data -A trust -U me
pg_ctl -D data -w -l log -o "-k $0 -c listen_addresses=''" start
createdb -h $0 -U me b
pgbench -h $0 -U me -i -q b
pgbench -h $0 -U me -t 250 -c 4 b
pg_ctl -D data -w -m fast stop
"""
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
HELLO = 'fn main() { println!("{}", (1..9).map(|n| n * n).sum::<u32>()); }\n'


def source(folder):
    """A repository of 20 commits over 200 files, for git and rsync."""
    os.makedirs(folder)
    git = ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    for commit in range(20):
        for n in range(10):
            with open(f"{folder}/f{commit}.{n}", "wb") as f:
                f.write(os.urandom(2000) * 5)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", str(commit)], check=True)


def programs(repository, sockets):
    # PostgreSQL does not run as root.
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    as_postgres = as_postgres if os.geteuid() == 0 else []
    crate = "cargo new -q --vcs none c && cd c && cp ../hello.rs src/main.rs && cargo build -q --offline"
    return [
        ("sqlite, rollback", "sqlite3", ["sqlite3", "db", "create table t(n,b);" + ROWS]),
        ("sqlite, WAL", "sqlite3",
         ["sqlite3", "db", "pragma journal_mode=wal; create table t(n,b);" + ROWS]),
        ("git clone, gc", "git",
         ["sh", "-c", f"git clone -q --no-local {repository} r && git -C r gc -q"]),
        ("redis, always", "redis-server", ["sh", "-ec", REDIS, sockets + "/redis"]),
        ("pgbench", "pgbench", [*as_postgres, "sh", "-ec", POSTGRES, sockets]),
        ("db_bench fillsync", "db_bench",
         ["db_bench", "--db=db", "--benchmarks=fillsync", "--num=1000"]),
        ("rsync", "rsync", ["rsync", "-a", f"{repository}/", "copy/"]),
        ("mail, 8 tasks", "python3", ["python3", "-c", MAIL]),
        ("cargo build", "cargo", ["sh", "-c", crate]),
    ]


def fresh(folder):
    made = tempfile.mkdtemp(prefix="replay-error-", dir=folder)
    os.chmod(made, 0o777)
    with open(f"{made}/hello.rs", "w") as f:
        f.write(HELLO)
    return made


def real(program, folder):
    at = fresh(folder)
    began = time.monotonic()
    subprocess.run(program, cwd=at, check=True, **QUIET)
    took = time.monotonic() - began
    shutil.rmtree(at)
    return took


def main():
    steadfast, rounds, *folders = sys.argv[1:]
    steadfast = os.path.abspath(steadfast)
    work = tempfile.mkdtemp(prefix="replay-error-")
    os.chmod(work, 0o777)
    source(f"{work}/repository")
    sockets = f"{work}/sockets"
    os.mkdir(sockets)
    os.chmod(sockets, 0o777)
    errors = []
    print(f"{'program':18}{'folder':24}{'program, s':>12}{'replay, s':>12}{'error':>9}  differences")
    for name, needed, program in programs(f"{work}/repository", sockets):
        if not shutil.which(needed):
            print(f"{name:18}left out: {needed} is not installed")
            continue
        trace = f"{work}/trace"
        times = {folder: ([], []) for folder in folders}
        differences = dict.fromkeys(folders, 0)
        for _ in range(int(rounds)):
            at = fresh(folders[0])
            record = [steadfast, "trace", "record", "-o", trace, "--folder", at, "--", *program]
            subprocess.run(record, check=True, **QUIET)
            shutil.rmtree(at)
            for folder in folders:
                times[folder][0].append(real(program, folder))
                replay = [steadfast, "trace", "replay", "--json", trace, folder]
                out = subprocess.run(replay, stdout=subprocess.PIPE)
                found = json.loads(out.stdout)
                times[folder][1].append(found["seconds"])
                differences[folder] += found["differences"]
        for folder in folders:
            ran, replayed = (statistics.median(t) for t in times[folder])
            error = (replayed / ran - 1) * 100
            errors.append(abs(error))
            print(f"{name:18}{folder[-23:]:24}{ran:12.3f}{replayed:12.3f}{error:+8.1f}%  "
                  f"{differences[folder]}", flush=True)
    shutil.rmtree(work)
    print(f"mean of the errors {statistics.mean(errors):.1f} %, the worst {max(errors):.1f} %")


main()
