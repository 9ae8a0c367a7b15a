//! The file that keeps a recorded run.
//!
//! ```text
//! "steadfast crash\n"  version: u32
//! section*             tag: 4 bytes, length: u64, CRC-32C of the payload: u32, payload
//! "END " section       empty
//! ```
//!
//! All numbers are little-endian. Sections, in this order: `ABOU` (texts by key: how to recover and
//! judge), `DEVS` (the devices), `BASE` (one a device: what it held at first), `TIME` (the first
//! tick, the time of each), `EVTS` (requests), `NOTE` (notes), `LINE` (printed lines), `CALL`
//! (calls of the program). A reader of another version refuses the file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{DeviceInfo, Persistence};
use steadfast_devices::filter::record::{
    Action, DeviceId, Durability, Event, Media, Moment, Note, RecordedDevice, Recording,
};
use steadfast_devices::store::{Packed, Store};
use steadfast_runtime::Nanos;

use super::calls::{Call, Kind, Origin};
use super::codec::{Reader, Result, Writer};
use super::{Line, Run};
use crate::tree::Contents;

const MAGIC: &[u8; 16] = b"steadfast crash\n";
/// 3: calls name files by number and generation.
const VERSION: u32 = 3;
/// Largest device in a file, in bytes: what a run of a program is recorded on is far smaller, and
/// whoever reads a file makes tables of its pages.
pub const DEVICE_BYTES_MAX: u64 = 64 << 30;
/// Bytes of a base written at a time.
const PIECE: u64 = 1 << 20;

/// Writes a run to a file, which is made or replaced.
///
/// # Errors
/// What the host reports.
pub fn save(run: &Run, path: &Path) -> io::Result<()> {
    let mut out = io::BufWriter::new(std::fs::File::create(path)?);
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let mut section = |tag: &[u8; 4], Writer(payload): Writer| -> io::Result<()> {
        out.write_all(tag)?;
        out.write_all(&(payload.len() as u64).to_le_bytes())?;
        out.write_all(&crc32c::crc32c(&payload).to_le_bytes())?;
        out.write_all(&payload)
    };
    section(b"ABOU", about(&run.about))?;
    section(b"DEVS", devices(run.recording.devices()))?;
    for base in &run.bases {
        section(b"BASE", contents(base))?;
    }
    section(b"TIME", times(&run.recording))?;
    section(b"EVTS", events(run.recording.events()))?;
    section(b"NOTE", notes(run.recording.notes()))?;
    section(b"LINE", lines(&run.lines))?;
    section(b"CALL", calls(&run.calls))?;
    section(b"END ", Writer::default())?;
    out.flush()
}

/// Reads a run from a file.
///
/// # Errors
/// What the host reports; what is wrong with the file, in words.
pub fn load(path: &Path) -> Result<Run> {
    let all = std::fs::read(path).map_err(|e| e.to_string())?;
    parse(Bytes::from(all))
}

/// Reads a run from the bytes of a file.
///
/// # Errors
/// What is wrong with them, in words.
pub fn parse(mut all: Bytes) -> Result<Run> {
    if all.len() < MAGIC.len() + 4 || all.split_to(MAGIC.len()) != MAGIC[..] {
        return Err("it is no recording of steadfast crash run".into());
    }
    let mut reader = Reader(all);
    let version = u32::from_le_bytes(reader.short()?);
    if version != VERSION {
        return Err(format!(
            "it is a recording of version {version}; this program reads version {VERSION}"
        ));
    }
    let about = read(&mut reader, "ABOU", read_about)?;
    let devices = read(&mut reader, "DEVS", read_devices)?;
    let mut bases = Vec::new();
    for device in &devices {
        let size = device.info.size;
        bases.push(read(&mut reader, "BASE", |r| read_contents(r, size))?);
    }
    let (first_tick, times) = read(&mut reader, "TIME", read_times)?;
    let clock = Clock { first_tick, times: &times };
    let events = read(&mut reader, "EVTS", |r| read_events(r, &clock))?;
    let notes = read(&mut reader, "NOTE", |r| read_notes(r, &clock))?;
    let lines = read(&mut reader, "LINE", |r| read_lines(r, &clock))?;
    let calls = read(&mut reader, "CALL", |r| read_calls(r, &clock))?;
    read(&mut reader, "END ", |_| Ok(()))?;
    let recording = Recording::rebuild(devices, events, notes, times, first_tick)
        .map_err(|e| format!("the recording does not fit together: {e}"))?;
    Ok(Run { about, bases, recording, lines, calls })
}

impl Reader {
    fn short(&mut self) -> Result<[u8; 4]> {
        Ok([self.byte()?, self.byte()?, self.byte()?, self.byte()?])
    }
}

fn read<T>(file: &mut Reader, tag: &str, work: impl FnOnce(&mut Reader) -> Result<T>) -> Result<T> {
    let within = |e: String| format!("section {tag:?}: {e}");
    let found = file.short().map_err(within)?;
    if found != tag.as_bytes() {
        return Err(format!(
            "section {tag:?} is missing: {:?} is in its place",
            String::from_utf8_lossy(&found)
        ));
    }
    // The length, the checksum, the payload.
    let len = file.number().map_err(within)?;
    let sum = u32::from_le_bytes(file.short().map_err(within)?);
    let payload = file.part(len).map_err(within)?;
    if crc32c::crc32c(&payload) != sum {
        return Err(format!("section {tag:?}: its checksum does not match: the file is damaged"));
    }
    let mut reader = Reader(payload);
    let value = work(&mut reader).map_err(within)?;
    reader.end().map_err(within)?;
    Ok(value)
}

impl Reader {
    fn part(&mut self, len: u64) -> Result<Bytes> {
        match usize::try_from(len) {
            Ok(len) if len <= self.0.len() => Ok(self.0.split_to(len)),
            _ => Err(format!("{len} bytes, of which the file has {}", self.0.len())),
        }
    }
}

fn about(texts: &BTreeMap<String, String>) -> Writer {
    let mut w = Writer::default();
    w.number(texts.len() as u64);
    for (key, text) in texts {
        w.bytes(key.as_bytes());
        w.bytes(text.as_bytes());
    }
    w
}

fn read_about(r: &mut Reader) -> Result<BTreeMap<String, String>> {
    (0..r.count(16)?).map(|_| Ok((r.text()?, r.text()?))).collect()
}

fn devices(devices: &[RecordedDevice]) -> Writer {
    let mut w = Writer::default();
    w.number(devices.len() as u64);
    // The medium is not kept: whoever cuts says it.
    for RecordedDevice { info, durability, .. } in devices {
        w.bytes(info.name.as_bytes());
        w.bytes(info.model.as_bytes());
        w.number(info.size);
        [info.logical_block, info.physical_block, info.atomic_write]
            .into_iter()
            .for_each(|n| w.number(n.into()));
        w.flag(info.volatile_cache);
        w.flag(info.rotational);
        match &info.persistence {
            Persistence::Persistent => w.bytes(b""),
            Persistence::Volatile { reason } => w.bytes(reason.as_bytes()),
        }
        match durability {
            Durability::OnCompletion => w.byte(0),
            Durability::OnFlush => w.byte(1),
            Durability::Lying { cache_bytes, drains_within } => {
                w.byte(2);
                w.number(*cache_bytes);
                w.number(drains_within.as_nanos() as u64);
            }
            Durability::OnStore => w.byte(3),
        }
    }
    w
}

fn read_devices(r: &mut Reader) -> Result<Vec<RecordedDevice>> {
    let count = r.count(60)?;
    if !(1..=16).contains(&count) {
        return Err(format!("{count} devices"));
    }
    let device = |r: &mut Reader| {
        let (name, model, size) = (r.text()?, r.text()?, r.number()?);
        if size == 0 || size > DEVICE_BYTES_MAX {
            return Err(format!("a device of {size} bytes"));
        }
        let mut block = || {
            let n = r.number()?;
            u32::try_from(n).ok().filter(|n| n.is_power_of_two()).ok_or(format!("a block of {n}"))
        };
        let mut info = DeviceInfo::new(name, model, size);
        (info.logical_block, info.physical_block) = (block()?, block()?);
        info.atomic_write = block()?;
        info.volatile_cache = r.flag()?;
        info.rotational = r.flag()?;
        let reason = r.text()?;
        if !reason.is_empty() {
            info.persistence = Persistence::Volatile { reason };
        }
        let durability = match r.byte()? {
            0 => Durability::OnCompletion,
            1 => Durability::OnFlush,
            2 => Durability::Lying {
                cache_bytes: r.number()?,
                drains_within: Duration::from_nanos(r.number()?),
            },
            3 => Durability::OnStore,
            other => return Err(format!("a promise of kind {other}")),
        };
        Ok(RecordedDevice { info, durability, media: Media::default() })
    };
    (0..count).map(|_| device(r)).collect()
}

fn contents(store: &Store) -> Writer {
    let mut w = Writer::default();
    let ranges: Vec<(u64, u64)> = store.populated().collect();
    let pieces = ranges.iter().map(|(_, len)| len.div_ceil(PIECE)).sum();
    w.number(pieces);
    for (offset, len) in ranges {
        for at in (offset..offset + len).step_by(PIECE as usize) {
            w.number(at);
            w.bytes(&store.read(at, PIECE.min(offset + len - at)));
        }
    }
    w
}

fn read_contents(r: &mut Reader, size: u64) -> Result<Store> {
    let mut store = Store::new(size);
    for _ in 0..r.count(16)? {
        let (offset, bytes) = (r.number()?, r.bytes()?);
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > size) {
            return Err(format!("contents at {offset}, beyond the device's {size} bytes"));
        }
        store.write_slice(offset, &bytes);
    }
    Ok(store)
}

fn times(recording: &Recording) -> Writer {
    let mut w = Writer::default();
    let (first, times) = recording.times();
    w.number(first);
    w.number(times.len() as u64);
    times.iter().for_each(|time| w.number(time.0));
    w
}

fn read_times(r: &mut Reader) -> Result<(u64, Vec<Nanos>)> {
    let first = r.number()?;
    let times = (0..r.count(8)?).map(|_| r.number().map(Nanos)).collect::<Result<_>>()?;
    Ok((first, times))
}

/// Times of ticks that are read.
struct Clock<'t> {
    first_tick: u64,
    times: &'t [Nanos],
}

impl Clock<'_> {
    fn moment(&self, tick: u64) -> Result<Moment> {
        tick.checked_sub(self.first_tick)
            .and_then(|place| self.times.get(usize::try_from(place).ok()?))
            .map(|at| Moment { tick, at: *at })
            .ok_or_else(|| format!("tick {tick}, which was not recorded"))
    }

    fn maybe(&self, tick: Option<u64>) -> Result<Option<Moment>> {
        tick.map(|tick| self.moment(tick)).transpose()
    }
}

fn events(events: &[Event]) -> Writer {
    let mut w = Writer::default();
    w.number(events.len() as u64);
    for event in events {
        w.number(event.device.0.into());
        w.number(event.submitted.tick);
        w.maybe(event.completed.map(|c| c.tick));
        w.flag(event.failed);
        w.number(event.call);
        match &event.action {
            Action::Flush => w.byte(0),
            Action::Write { offset, data, fua } => {
                w.byte(1);
                w.number(*offset);
                w.flag(*fua);
                w.bytes(&data.unpack());
            }
            Action::Discard { offset, len } => {
                w.byte(2);
                w.number(*offset);
                w.number(*len);
            }
            Action::Store { offset, data } => {
                w.byte(3);
                w.number(*offset);
                w.bytes(&data.unpack());
            }
            Action::Persist { offset, len } => {
                w.byte(4);
                w.number(*offset);
                w.number(*len);
            }
            Action::Fence => w.byte(5),
        }
    }
    w
}

fn read_events(r: &mut Reader, clock: &Clock<'_>) -> Result<Vec<Event>> {
    let event = |r: &mut Reader| {
        let device = r.number()?;
        let device = DeviceId(u32::try_from(device).map_err(|_| format!("device {device}"))?);
        let submitted = clock.moment(r.number()?)?;
        let completed = clock.maybe(r.maybe()?)?;
        let failed = r.flag()?;
        let call = r.number()?;
        let action = match r.byte()? {
            0 => Action::Flush,
            1 => Action::Write {
                offset: r.number()?,
                fua: r.flag()?,
                data: Packed::pack(&r.bytes()?),
            },
            2 => Action::Discard { offset: r.number()?, len: r.number()? },
            3 => Action::Store { offset: r.number()?, data: Packed::pack(&r.bytes()?) },
            4 => Action::Persist { offset: r.number()?, len: r.number()? },
            5 => Action::Fence,
            other => return Err(format!("a request of kind {other}")),
        };
        Ok(Event { device, submitted, completed, failed, call, action })
    };
    (0..r.count(34)?).map(|_| event(r)).collect()
}

fn notes(notes: &[Note]) -> Writer {
    let mut w = Writer::default();
    w.number(notes.len() as u64);
    for note in notes {
        w.number(note.moment.tick);
        w.number(note.label);
        note.detail.iter().for_each(|d| w.number(*d));
    }
    w
}

fn read_notes(r: &mut Reader, clock: &Clock<'_>) -> Result<Vec<Note>> {
    let note = |r: &mut Reader| {
        let moment = clock.moment(r.number()?)?;
        let label = r.number()?;
        Ok(Note { moment, label, detail: [r.number()?, r.number()?, r.number()?] })
    };
    (0..r.count(40)?).map(|_| note(r)).collect()
}

fn lines(lines: &[Line]) -> Writer {
    let mut w = Writer::default();
    w.number(lines.len() as u64);
    for line in lines {
        w.number(line.printed.tick);
        w.bytes(&line.text);
    }
    w
}

fn read_lines(r: &mut Reader, clock: &Clock<'_>) -> Result<Vec<Line>> {
    let line = |r: &mut Reader| {
        let printed = clock.moment(r.number()?)?;
        Ok(Line { printed, text: r.bytes()?.into() })
    };
    (0..r.count(16)?).map(|_| line(r)).collect()
}

fn calls(calls: &[Call]) -> Writer {
    let mut w = Writer::default();
    w.number(calls.len() as u64);
    for call in calls {
        let number = Kind::ALL.iter().position(|kind| *kind == call.kind).unwrap_or(0);
        w.byte(number as u8);
        match call.origin {
            Origin::Program => w.byte(0),
            Origin::PartOf(first) => {
                w.byte(1);
                w.number(first as u64);
            }
            Origin::Kernel => w.byte(2),
        }
        w.flag(call.promises);
        w.flag(call.unplaced);
        w.number(call.started.tick);
        w.maybe(call.returned.map(|r| r.tick));
        w.flag(call.failed);
        [call.ino, call.replaced, call.offset].into_iter().for_each(|n| w.number(n));
        w.bytes(&call.path);
        w.bytes(&call.other);
        for contents in [call.contents, call.lost] {
            w.flag(contents.is_some());
            if let Some(Contents { size, digest }) = contents {
                w.number(size);
                w.wide(digest);
            }
        }
    }
    w
}

fn read_calls(r: &mut Reader, clock: &Clock<'_>) -> Result<Vec<Call>> {
    let contents = |r: &mut Reader| -> Result<Option<Contents>> {
        Ok(match r.flag()? {
            true => Some(Contents { size: r.number()?, digest: r.wide()? }),
            false => None,
        })
    };
    let call = |r: &mut Reader, place: usize| {
        let number = r.byte()?;
        let kind = Kind::ALL.get(usize::from(number)).ok_or(format!("a call of kind {number}"))?;
        let origin = match r.byte()? {
            0 => Origin::Program,
            1 => {
                let first = r.number()?;
                let earlier = usize::try_from(first).ok().filter(|first| *first < place);
                Origin::PartOf(earlier.ok_or_else(|| format!("a part of call {first}"))?)
            }
            2 => Origin::Kernel,
            other => return Err(format!("a call of origin {other}")),
        };
        Ok(Call {
            kind: *kind,
            origin,
            promises: r.flag()?,
            unplaced: r.flag()?,
            started: clock.moment(r.number()?)?,
            returned: clock.maybe(r.maybe()?)?,
            failed: r.flag()?,
            ino: r.number()?,
            replaced: r.number()?,
            offset: r.number()?,
            path: r.bytes()?.into(),
            other: r.bytes()?.into(),
            contents: contents(r)?,
            lost: contents(r)?,
        })
    };
    (0..r.count(63)?).map(|place| call(r, place)).collect()
}

#[cfg(test)]
mod tests;
