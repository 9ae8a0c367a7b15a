"""Power-cut tests of the small store. Those of the class TestPlanted must fail: each has a bug."""

import os
from functools import partial

import store
from steadfast_powercut import begin, cut, end, fail_next, mark, unsynced

#: The program leaves nothing to be written later: it need not be waited for.
SHORT = ["--linger", "0.2"]
OLD = "printf colour=blue > settings; touch journal; sync settings journal ."


def acked_records_are_there(acked):
    """What was acknowledged is in the journal."""
    with open("journal", encoding="utf-8") as journal:
        records = journal.read().splitlines()
    missing = [line for line in acked if line.replace("acked", "record") not in records]
    assert not missing, f"{missing[0]} is not in the journal"


def appends(sync_first):
    for number in range(3):
        store.append(number, sync_first)


def appends_with_a_failing_fsync(how):
    fail_next("fsync", "journal", "EIO")
    getattr(store, how)(17)


def says_what_it_does():
    """Asks for everything that there is."""
    before = unsynced()
    assert before["bytes"] == 0, before
    with open("journal", "ab", buffering=0) as journal:
        journal.write(b"record 1\n")
        now = unsynced()
        assert [file["path"] for file in now["files"]] == ["journal"], now
        begin()
        cut()
        os.fsync(journal.fileno())
        end()
    assert unsynced()["bytes"] == 0
    mark("acked 1")


class TestPlanted:
    def test_settings(self, power_cut):
        power_cut(partial(store.save, "colour=green", False), setup=OLD, options=SHORT)

    def test_appends(self, power_cut):
        power_cut(partial(appends, False), acked_records_are_there, OLD, SHORT)

    def test_failing_fsync(self, power_cut):
        program = partial(appends_with_a_failing_fsync, "append_carelessly")
        power_cut(program, setup=OLD, options=SHORT)


class TestTwins:
    def test_settings(self, power_cut):
        power_cut(partial(store.save, "colour=green", True), setup=OLD, options=SHORT)

    def test_appends(self, power_cut):
        power_cut(partial(appends, True), acked_records_are_there, OLD, SHORT)

    def test_failing_fsync(self, power_cut):
        program = partial(appends_with_a_failing_fsync, "append_anew")
        power_cut(program, setup=OLD, options=SHORT)

    def test_words(self, power_cut):
        said = power_cut(says_what_it_does, acked_records_are_there, OLD, SHORT)
        assert "1 mark, 1 cut, 1 part" in said


def test_without_steadfast_the_words_do_nothing():
    mark("nothing")
    assert unsynced() is None
