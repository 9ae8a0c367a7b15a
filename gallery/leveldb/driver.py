"""LevelDB, by way of plyvel. The write buffer is small, so that there are compactions."""

import plyvel
import records

OPTIONS = {"create_if_missing": True, "write_buffer_size": 16 << 10}


def write(setting):
    with plyvel.DB("db", **OPTIONS) as db:
        for n in range(1, records.COUNT + 1):
            db.put(b"%04d" % n, records.value(n), sync=setting == "sync")
            yield n


def read():
    with plyvel.DB("db", **OPTIONS) as db:
        return [(int(key), value) for key, value in db.iterator(verify_checksums=True)]


records.main(write, read)
