"""What a cut in a checkpoint leaves of DuckDB, without a power cut: a file as it was before the
checkpoint, but for some sectors of one block, which are as they are after it."""

import shutil

import duckdb
import records

FIRST_BLOCK, BLOCK, SECTOR = 12288, 262144, 512


def rows(name):
    """What a copy of the database has; the log is that of before the checkpoint."""
    shutil.copy(name, "copy")
    shutil.copy("before.wal", "copy.wal")
    try:
        with duckdb.connect("copy") as db:
            return db.execute("select count(*) from t").fetchone()[0]
    except duckdb.Error as error:
        return str(error).splitlines()[0]


db = duckdb.connect("db")
db.execute("create table t(n integer primary key, what blob)")
for n in range(1, 17):
    db.execute("insert into t values (?, ?)", [n, records.value(n)])
    if n == 8:
        db.execute("checkpoint")
shutil.copy("db", "before")
shutil.copy("db.wal", "before.wal")
db.execute("checkpoint")
with open("before", "rb") as file:
    before = bytearray(file.read())
with open("db", "rb") as file:
    after = file.read()
print(f"as before the checkpoint: {rows('before')}")
for block in range(FIRST_BLOCK, len(before), BLOCK):
    sectors = [slice(at, at + SECTOR) for at in range(block, block + BLOCK, SECTOR)]
    changed = [sector for sector in sectors if before[sector] != after[sector]]
    if changed:
        torn = bytearray(before)
        for sector in changed[: len(changed) // 2]:
            torn[sector] = after[sector]
        with open("torn", "wb") as file:
            file.write(torn)
        print(f"with {len(changed) // 2} of {len(changed)} sectors at {block}: {rows('torn')}")
