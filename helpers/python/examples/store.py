"""A small store: a journal of records, and settings that are replaced as a whole."""

import os

from steadfast_powercut import mark


def save(text, sync):
    """Replaces the settings; `sync`: in the right way."""
    with open("settings.new", "w", encoding="utf-8") as new:
        new.write(text)
        if sync:
            new.flush()
            os.fsync(new.fileno())
    os.rename("settings.new", "settings")


def append(number, sync_first):
    """Appends a record and acknowledges it; `sync_first`: not before it is durable."""
    with open("journal", "a", encoding="utf-8") as journal:
        journal.write(f"record {number}\n")
        journal.flush()
        if not sync_first:
            mark(f"acked {number}")
        os.fsync(journal.fileno())
        if sync_first:
            mark(f"acked {number}")


def append_carelessly(number):
    """Appends a record, and takes an error of fsync for something that passes."""
    with open("journal", "a", encoding="utf-8") as journal:
        journal.write(f"record {number}\n")
        journal.flush()
        try:
            os.fsync(journal.fileno())
        except OSError:
            os.fsync(journal.fileno())
    mark(f"acked {number}")


def append_anew(number):
    """Appends a record; after an error of fsync it writes it again."""
    with open("journal", "ab") as journal:
        start = journal.seek(0, os.SEEK_END)
        while True:
            journal.write(f"record {number}\n".encode())
            journal.flush()
            try:
                os.fsync(journal.fileno())
                break
            except OSError:
                journal.truncate(start)
    mark(f"acked {number}")
