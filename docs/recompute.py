#!/usr/bin/env python3
"""Counts again what cuts took, from what `lab run --record DIR` has written.

Usage: recompute.py DIR   (standard library only)

The recording says what the workload did, what it was promised, and what each recovered file
system held; docs/risk.md says how the figures follow. They are computed here anew, cut by cut, and
compared with what the program has counted. Exit status 1 if one differs, or cannot be so.

Each seed and variant has a folder DIR/seed-S/VARIANT, with JSON lines. All instants are {`tick`,
`ns`}: the place in the order of all that happened in the run, and the time. After the first file
that cannot be written nothing more is recorded; a file that is there is whole.

devices.jsonl      `device` (number), `name`, `bytes`, `keeps`: what of its writes a power failure
                   spares
requests.jsonl     what a device was asked: `device`, `request` (write, flush, discard, store,
                   persist, fence), `offset`, `bytes`, `fua`, `data` (pieces of what was written:
                   `stamped` [bytes, tag, position], `escaped` the same with zeros for the journal's
                   magic number that it began with, `fill` [bytes, byte], `other` [bytes, digest]),
                   `submitted`, `completed` (null: never), `failed`
writes.jsonl       what the workload did to contents: `file` (or `object N`, the Nth that was made,
                   where files change their names), `call` (write, resize, clear, allocate),
                   `offset` (of a resize: the size), `bytes`, `tag` (what the data of a write is
                   stamped with), `started`, `returned`, `durable` (from when on it was promised;
                   null: never)
calls.jsonl        what it did to names, and what it asked to be made durable: `call`, `path`,
                   `other`, `started`, `returned`
found-files.jsonl  files as they were found after cuts: `path`, `size`, `runs`: from which byte on
                   there are zeros ([byte]), stamped data ([byte, tag, position]), or anything
                   else, sector by sector ([byte, its bytes])
found.jsonl        of a recovered file system the files, by their lines in found-files.jsonl, from 0
cuts.jsonl         a cut: `number`, `place` (the number of the first cut at the same place), `tick`,
                   `at_ns`, `found` (the line of found.jsonl, from 0), and what it took, in the
                   words of the JSON: `broken_promises`, `lost_bytes`, `lost_operations`,
                   `lost_age_ns`, `torn_writes`, `torn_units`, `stale_bytes`, `order_violations`,
                   `empty_after_rename`, `empty_after_replace`, `damage` (in words),
                   `manual_repair`, `e2fsck_clean` (null: not asked), `recovery_ns`
control-flush-ignored.jsonl, control-flushes-omitted.jsonl    the cuts of the controls
"""
import bisect
import collections
import json
import pathlib
import statistics
import sys

SECTOR, UNIT, WORD = 512, 4096, 8
NEVER = float("inf")
MASK = (1 << 64) - 1
STEP, MIX = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93


def rows(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def upper_bound(events, cuts):
    """Of a rate at 95 %, in per cent: 3 / n for no event, else Clopper and Pearson."""
    if events == 0 or events == cuts:
        return min(300 / cuts, 100.0) if events == 0 else 100.0
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        one = total = (1 - rate) ** cuts
        for k in range(events):
            one *= (cuts - k) / (k + 1) * rate / (1 - rate)
            total += one
        low, high = (rate, high) if total > 0.05 else (low, rate)
    return high * 100


def tick(moment):
    return NEVER if moment is None else moment["tick"]


def stamped(tag, position):
    """The 512 bytes of stamped data: tag, position, and words that follow from both."""
    base = (tag * MIX & MASK ^ position) * STEP & MASK
    words = [tag, position]
    for i in range(2, SECTOR // WORD):
        x = (base + i * STEP) & MASK
        words.append((x ^ x >> 32) * MIX & MASK)
    return b"".join(word.to_bytes(WORD, "little") for word in words)


class Op:
    """What was done to a file's contents."""

    def __init__(self, row):
        self.kind, self.offset, self.bytes = row["call"], row["offset"], row["bytes"]
        self.tag = row.get("tag")
        self.started, self.returned = tick(row["started"]), tick(row["returned"])
        self.returned_ns = row["returned"]["ns"] if row["returned"] else None
        self.durable = tick(row["durable"])

    def cleared(self):
        if self.kind == "resize":
            return (self.offset, NEVER)
        return (self.offset, self.offset + self.bytes) if self.kind == "clear" else None


class Found:
    """A file as it was found: sector by sector zeros, a stamp, or bytes."""

    def __init__(self, row):
        self.path, self.size = row["path"], row["size"]
        self.sectors = []
        runs = row["runs"] + [[self.size]]
        for run, after in zip(runs, runs[1:]):
            for at in range(run[0], after[0], SECTOR):
                if len(run) == 1:
                    self.sectors.append(None)
                elif len(run) == 3:
                    self.sectors.append((run[1], run[2] + at - run[0]))
                else:
                    self.sectors.append(bytes.fromhex(run[1]))


NOTHING = Found({"path": "", "size": 0, "runs": []})


class Loss:
    """What a cut took of a file."""

    def __init__(self):
        self.broken, self.lost, self.torn, self.out_of_order = [], [], [], []
        self.lost_bytes = self.torn_units = self.stale = 0
        self.oldest = None


def of_words(held, here, ops):
    """Whose words a sector holds: (oldest, newest, zeros), None: nobody's, () only zeros."""
    owners = [None] * (len(held) // WORD)
    for i, op in enumerate(ops):
        if op.kind == "write" and op.offset <= here < op.offset + op.bytes:
            data = stamped(op.tag, here)
            for n in range(len(owners)):
                if held[n * WORD : n * WORD + WORD] == data[n * WORD : n * WORD + WORD]:
                    owners[n] = i
    for n, owner in enumerate(owners):
        if owner is None and any(held[n * WORD : n * WORD + WORD]):
            return None
    known = [owner for owner in owners if owner is not None]
    if len(held) % WORD:
        return None
    return (min(known), max(known), None in owners) if known else ()


def judge(ops, cut, found):
    """What a cut took of a file whose operations had started before."""
    loss = Loss()
    tags = {op.tag: i for i, op in enumerate(ops) if op.kind == "write"}
    end = max((op.offset + op.bytes for op in ops if op.kind == "write"), default=0)
    count = max(-(-end // SECTOR), len(found.sectors))
    newest, durable, cleared = [None] * count, [None] * count, [None] * count
    for i, op in enumerate(ops):
        clears = op.cleared()
        if op.kind != "write" and not clears:
            continue
        low, high = clears or (op.offset, op.offset + op.bytes)
        first = min(-(-low // SECTOR), count)
        last = count if high == NEVER else min(high // SECTOR, count)
        for sector in range(first, last):
            newest[sector] = i
            if clears:
                cleared[sector] = i
            if op.durable < cut:
                durable[sector] = i
    gone = cut_off(ops, found.size)
    kept = collections.defaultdict(lambda: [0, 0])
    units = collections.defaultdict(set)
    broken = set()
    for sector in range(count):
        here = sector * SECTOR
        held = found.sectors[sector] if sector < len(found.sectors) else None
        # (oldest, newest) operation whose data is there, and whether zeros are.
        write, zeros, stale = None, held is None, False
        if isinstance(held, tuple):
            i = tags.get(held[0])
            good = i is not None and held[1] == here
            good = good and ops[i].offset <= here < ops[i].offset + ops[i].bytes
            write, stale = ((i, i), False) if good else (None, True)
        elif held is not None:
            words = of_words(held, here, ops)
            if words is None:
                stale = True
            elif words:
                write, zeros = words[:2], words[2]
            else:
                zeros = True
        is_back = gone and isinstance(held, tuple) and not stale
        if stale or (is_back and write[0] < gone[0] and here >= gone[1]):
            loss.stale += min(SECTOR, found.size - here)
        owner = newest[sector]
        if owner is not None and ops[owner].kind == "write":
            whole = write == (owner, owner) and not zeros
            mixed = write is not None and isinstance(held, bytes)
            marks = [True] if whole else [False]
            if mixed and write[1] == owner:
                marks = [False, True]
            for mark in marks:
                kept[owner][0 if mark else 1] += 1
                units[(sector * SECTOR // UNIT, owner)].add(mark)
        promised = durable[sector]
        if promised is not None:
            after = cleared[sector]
            nothing = ops[promised].cleared() is not None
            nothing = nothing or (after is not None and after > promised)
            good = not stale and (write is None or write[0] >= promised)
            good = good and (not zeros or nothing)
            if not good:
                broken.add(promised)
    if not broken:
        broken |= wrong_size(ops, cut, found.size)
    loss.broken = sorted(broken)
    loss.torn_units = sum(len(marks) == 2 for marks in units.values())
    last = max((i for i, (has, _) in kept.items() if has), default=None)
    for i, (has, misses) in sorted(kept.items()):
        if not misses:
            continue
        if has:
            loss.torn.append(i)
        if ops[i].returned >= cut:
            continue
        loss.lost.append(i)
        loss.lost_bytes += misses * SECTOR
        ns = ops[i].returned_ns
        loss.oldest = ns if loss.oldest is None else min(loss.oldest, ns)
        if last is not None and last > i and ops[last].started > ops[i].returned:
            loss.out_of_order.append(i)
    return loss


def cut_off(ops, length):
    """The last truncation before the call that first made the file so long, and from where."""
    size, last = 0, None
    if length % UNIT == 0:
        return None
    for i, op in enumerate(ops):
        if op.kind == "resize":
            last = (i, op.offset) if op.offset < size else last
            size = op.offset
        elif op.kind in ("write", "allocate"):
            size = max(size, op.offset + op.bytes)
        if size == length:
            return last if last and last[1] < length else None
    return None


def wrong_size(ops, cut, size):
    """The operation that promised another size."""
    least, least_by, most, most_by = 0, None, 0, None
    for i, op in enumerate(ops):
        promised = op.durable < cut
        if op.kind == "resize":
            if promised:
                least, least_by, most, most_by = op.offset, i, op.offset, i
            else:
                least, most = min(least, op.offset), max(most, op.offset)
        elif op.kind in ("write", "allocate"):
            end = op.offset + op.bytes
            if promised and end > least:
                least, least_by = end, i
            most = max(most, end)
    if size < least:
        return {least_by}
    return {most_by} if size > most and most_by is not None else set()


class Binding:
    """What a path holds from an operation on."""

    def __init__(self, holds, call, number):
        self.holds, self.call, self.number = holds, call["call"], number
        self.started, self.returned = tick(call["started"]), tick(call["returned"])
        self.returned_ns = call["returned"]["ns"] if call["returned"] else None
        self.durable = NEVER


def folder_of(path):
    return path.rpartition("/")[0]


class Names:
    """Names and promises, from the calls alone."""

    def __init__(self, calls, files):
        self.paths = collections.defaultdict(list)
        made = 0
        syncs = []
        for number, call in enumerate(calls):
            kind, path, other = call["call"], call["path"], call["other"]
            holder = self.paths[path][-1].holds if self.paths.get(path) else None
            if kind == "create":
                made += 1
                self.bind(path, made, call, number)
            elif kind == "rename":
                self.bind(path, None, call, number)
                self.bind(other, holder, call, number)
            elif kind == "link":
                self.bind(other, holder, call, number)
            elif kind == "unlink":
                self.bind(path, None, call, number)
            elif kind in ("fsync", "fdatasync"):
                held = [b.holds for b in self.paths.get(path, []) if b.holds is not None]
                syncs.append((kind, held[-1] if held else None, call))
            elif kind in ("fsync of directory", "sync"):
                syncs.append((kind, path, call))
        for kind, of, call in syncs:
            begun, done = tick(call["started"]), tick(call["returned"])
            if done == NEVER:
                continue
            for path, bindings in self.paths.items():
                if kind == "sync" or (kind == "fsync of directory" and of == folder_of(path)):
                    for b in bindings:
                        if b.returned < begun:
                            b.durable = min(b.durable, done)
            promised = files if kind == "sync" else [of] if kind.startswith("f") else []
            for file in promised if kind != "fsync of directory" else []:
                for op in files.get(file, []):
                    if op.returned < begun:
                        op.counted = min(op.counted, done)

    def bind(self, path, holds, call, number):
        self.paths[path].append(Binding(holds, call, number))


class Run:
    """A recorded run."""

    def __init__(self, folder):
        self.files = collections.defaultdict(list)
        self.known = {}
        writes = rows(folder / "writes.jsonl")
        self.named = any(w["file"].startswith("object ") for w in writes)
        for row in writes:
            name = row["file"]
            op = Op(row)
            op.counted = NEVER
            self.files[int(name[7:]) if self.named else name].append(op)
        self.found = [Found(row) for row in rows(folder / "found-files.jsonl")]
        self.trees = rows(folder / "found.jsonl")
        self.names = None
        self.wrong_promises = 0
        if self.named:
            self.names = Names(rows(folder / "calls.jsonl"), self.files)
            for ops in self.files.values():
                self.wrong_promises += sum(op.durable != op.counted for op in ops)
        self.asked = Asked(folder)

    def loss(self, file, cut, found):
        ops = self.files.get(file, [])
        begun = bisect.bisect_left(ops, cut, key=lambda op: op.started)
        ops = ops[:begun]
        state = (sum(op.returned < cut for op in ops), sum(op.durable < cut for op in ops))
        key = (file, begun, state, id(found))
        if key not in self.known:
            self.known[key] = judge(ops, cut, found)
        return self.known[key]

    def count(self, cut):
        """The figures of a cut, in the words of cuts.jsonl."""
        tree = {self.found[n].path: self.found[n] for n in self.trees[cut["found"]]}
        figures = collections.Counter()
        oldest = []
        if self.named:
            Tree(self, cut["tick"], tree, figures, oldest).judge()
        else:
            for file in self.files:
                loss = self.loss(file, cut["tick"], tree.get(file, NOTHING))
                add(figures, oldest, loss, True)
        age = max((cut["at_ns"] - ns for ns in oldest), default=0)
        figures["lost_age_ns"] = age
        return figures


def add(figures, oldest, loss, is_there):
    figures["lost_operations"] += len(loss.lost)
    figures["lost_bytes"] += loss.lost_bytes
    if loss.oldest is not None:
        oldest.append(loss.oldest)
    if is_there:
        figures["broken_promises"] += len(loss.broken)
        figures["torn_writes"] += len(loss.torn)
        figures["torn_units"] += loss.torn_units
        figures["stale_bytes"] += loss.stale
        figures["order_violations"] += len(loss.out_of_order)


class Tree:
    """What a recovered file system shows, beside what was promised."""

    def __init__(self, run, cut, tree, figures, oldest):
        self.run, self.cut, self.tree = run, cut, tree
        self.figures, self.oldest = figures, oldest
        self.here, self.blamed, self.lost_calls = {}, set(), {}
        self.identified = {}
        for path, found in tree.items():
            bound = {b.holds for b in run.names.paths.get(path, [])}
            seen = collections.Counter()
            for held in found.sectors[: found.size // SECTOR]:
                if isinstance(held, tuple) and held[0] >> 32 in bound:
                    seen[held[0] >> 32] += 1
            if seen:
                self.identified[path] = max(seen, key=lambda o: (seen[o], o))
        self.taken = set(self.identified.values())

    def judge(self):
        for path in sorted(self.run.names.paths):
            self.path(path)
        for file, path in self.here.items():
            add(self.figures, self.oldest, self.loss(file, self.tree.get(path)), True)
        self.missing()
        self.figures["lost_operations"] += len(self.lost_calls)
        self.oldest.extend(self.lost_calls.values())

    def loss(self, file, found):
        return self.run.loss(file, self.cut, found or NOTHING)

    def begun(self, path):
        return [b for b in self.run.names.paths[path] if b.started < self.cut]

    def path(self, path):
        bindings, found = self.begun(path), self.tree.get(path)
        durable = [i for i, b in enumerate(bindings) if b.durable < self.cut]
        promised = durable[-1] if durable else None
        shown = self.shown(path, bindings, promised, found)
        if shown is not None and found and bindings[shown].holds is not None:
            file = bindings[shown].holds
            self.here.setdefault(file, path)
            self.renamed(bindings, shown, file, found)
        newer = 0 if shown is None else shown + 1
        for b in bindings[newer:]:
            if b.returned < self.cut:
                self.lost_calls[b.number] = b.returned_ns
        if promised is not None and newer <= promised:
            file = bindings[promised].holds
            if file is None or file not in self.blamed:
                self.figures["broken_promises"] += 1
            self.blamed |= {file} - {None}

    def shown(self, path, bindings, promised, found):
        """Which binding a path shows; None: nothing, or what no binding speaks of."""
        def newest(holds):
            all_of = [i for i, b in enumerate(bindings) if b.holds == holds]
            return all_of[-1] if all_of else None

        if not found:
            return newest(None)
        if path in self.identified:
            return newest(self.identified[path])
        best = None
        for i in range(promised or 0, len(bindings)):
            file = bindings[i].holds
            if file is None:
                continue
            loss = self.loss(file, found)
            key = (
                file in self.taken,
                (len(loss.broken), loss.lost_bytes),
                i > 0 and bindings[i - 1].holds is not None,
                -i,
            )
            best = min(best, (key, i)) if best else (key, i)
        return best[1] if best else None

    def renamed(self, bindings, shown, file, found):
        binding = bindings[shown]
        ops = self.run.files.get(file, [])
        before = [i for i in self.loss(file, found).lost if ops[i].returned < binding.started]
        if binding.call == "rename" and before:
            self.figures["empty_after_rename"] += 1
            self.figures["order_violations"] += 1
            replaced = shown > 0 and bindings[shown - 1].holds is not None
            self.figures["empty_after_replace"] += replaced

    def missing(self):
        promised, counted = self.promised_names(), set()
        for path in sorted(self.run.names.paths):
            bindings = self.begun(path)
            file = bindings[-1].holds if bindings else None
            if file is None or file in self.here or file in counted:
                continue
            counted.add(file)
            add(self.figures, self.oldest, self.loss(file, None), False)
            if file in promised and file not in self.blamed:
                self.blamed.add(file)
                self.figures["broken_promises"] += 1

    def promised_names(self):
        names = set()
        for path in self.run.names.paths:
            bindings = self.begun(path)
            durable = [i for i, b in enumerate(bindings) if b.durable < self.cut]
            if durable and bindings[durable[-1]].holds is not None:
                after = bindings[durable[-1] + 1 : durable[-1] + 2]
                if not any(b.call == "unlink" for b in after):
                    names.add(bindings[durable[-1]].holds)
        return names


class Asked:
    """What the devices were asked to write, by the tags of the data."""

    def __init__(self, folder):
        devices = rows(folder / "devices.jsonl")
        # Of memory, words are written and not sectors.
        self.is_known = all(d["keeps"] != "what was stored" for d in devices)
        self.first = NEVER
        self.runs = collections.defaultdict(list)
        for request in rows(folder / "requests.jsonl"):
            at = request["submitted"]["tick"]
            self.first = min(self.first, at)
            for piece in request.get("data", []):
                # A journal writes what its own blocks begin with as zeros: data all the same.
                stamped = piece.get("stamped") or piece.get("escaped")
                if stamped:
                    length, tag, position = stamped
                    self.runs[tag].append((position, position + length, at))

    def had(self, tag, position, cut):
        return any(a <= position < b and at < cut for a, b, at in self.runs.get(tag, []))


def impossible(run, cut):
    """Sectors of the workload's that no device had been asked to write when the power went."""
    if not run.asked.is_known:
        return 0
    written = {op.tag: op for ops in run.files.values() for op in ops if op.tag is not None}
    wrong = 0
    for number in run.trees[cut["found"]]:
        for held in run.found[number].sectors[:: UNIT // SECTOR]:
            op = written.get(held[0]) if isinstance(held, tuple) else None
            if op and op.started > run.asked.first:
                wrong += not run.asked.had(held[0], held[1], cut["tick"])
    return wrong


FIGURES = [
    "broken_promises",
    "lost_bytes",
    "lost_operations",
    "lost_age_ns",
    "torn_writes",
    "torn_units",
    "stale_bytes",
    "order_violations",
    "empty_after_rename",
    "empty_after_replace",
]


def count(folder):
    name = f"{folder.parent.name}/{folder.name}"
    cuts = rows(folder / "cuts.jsonl")
    if not cuts:
        print(f"{name}: no cuts")
        return True
    run = Run(folder)
    counted = [run.count(cut) for cut in cuts]
    broken = [c for c, f in zip(cuts, counted) if f["broken_promises"] > 0]
    # Cuts at one place are one trial.
    places, bad = len({c["place"] for c in cuts}), len({c["place"] for c in broken})
    lost = sorted(f["lost_bytes"] for f in counted)
    tail = lost[-(-len(lost) * 99 // 100) - 1] if len(lost) >= 400 else lost[-1]
    which = "p99" if len(lost) >= 400 else f"max of {len(lost)}"
    print(f"{name}: {len(cuts)} cuts at {places} places")
    print(f"  cuts with broken promises: {len(broken)} (<={upper_bound(bad, places):.3g} %)")
    print(f"  lost bytes: p50 {statistics.median_low(lost)}, {which} {tail}")
    sums = {figure: sum(f[figure] for f in counted) for figure in FIGURES}
    print("  over all cuts: " + ", ".join(f"{figure} {n}" for figure, n in sums.items()))
    differ = 0
    for cut, own in zip(cuts, counted):
        for figure in FIGURES:
            if own[figure] != cut[figure]:
                differ += 1
                told = f"{cut[figure]} was counted, it is {own[figure]}"
                print(f"  cut {cut['number']}: {figure}: {told}") if differ <= 8 else None
    wrong = sum(impossible(run, cut) for cut in cuts)
    print(f"  figures that differ from the program's: {differ} of {len(cuts) * len(FIGURES)}")
    print(f"  promises that the calls do not make: {run.wrong_promises}")
    print(f"  blocks found that no device had been asked to write: {wrong}")
    return differ + wrong + run.wrong_promises == 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    recorded = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/*/cuts.jsonl"))
    if not recorded:
        sys.exit(f"{sys.argv[1]}: no recording of a run that was cut (SEED/VARIANT/cuts.jsonl)")
    sys.exit(0 if all([count(folder) for folder in recorded]) else 1)
