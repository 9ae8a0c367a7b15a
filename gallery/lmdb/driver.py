"""LMDB: each record is a transaction, which also writes an older record anew."""

import lmdb
import records

FLAGS = {"sync": {}, "nometasync": {"metasync": False}, "nosync": {"sync": False}}


def key(n):
    return b"%04d" % n


def write(setting):
    with lmdb.open("db", map_size=8 << 20, **FLAGS[setting]) as env:
        for n in range(1, records.COUNT + 1):
            with env.begin(write=True) as txn:
                for n_written in {n, (n + 1) // 2}:
                    txn.put(key(n_written), records.value(n_written))
            yield n


def read():
    with lmdb.open("db", map_size=8 << 20) as env, env.begin() as txn:
        return [(int(key), value) for key, value in txn.cursor()]


records.main(write, read)
