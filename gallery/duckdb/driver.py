"""DuckDB: each record is a transaction; some are followed by a checkpoint."""

import duckdb
import records


def write(setting):
    with duckdb.connect("db") as db:
        db.execute("create table if not exists t(n integer primary key, what blob)")
        for n in range(1, records.COUNT + 1):
            db.execute("insert into t values (?, ?)", [n, records.value(n)])
            yield n
            if n % 8 == 0:
                db.execute("checkpoint")


def read():
    with duckdb.connect("db") as db:
        db.execute("create table if not exists t(n integer primary key, what blob)")
        return db.execute("select n, what from t order by n").fetchall()


records.main(write, read)
