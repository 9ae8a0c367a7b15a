"""RocksDB, by way of rocksdict. The write buffer is small, so that there are flushes."""

import records
from rocksdict import Options, Rdict, WriteOptions


def opened():
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 << 10)
    return Rdict("db", options)


def write(setting):
    db = opened()
    options = WriteOptions()
    options.sync = setting == "sync"
    for n in range(1, records.COUNT + 1):
        db.put(b"%04d" % n, records.value(n), write_opt=options)
        if n % 8 == 0:
            db.flush()
        yield n
    db.close()


def read():
    db = opened()
    left = [(int(key), value) for key, value in db.items()]
    db.close()
    return left


records.main(write, read)
