//! A run as it stands in a file.
//!
//! A moment is its tick alone: the times of all ticks are kept once. What a device is is described
//! here ([`serde`'s `remote`](https://serde.rs/remote-derive.html)), so that a field that it gains
//! does not compile until it is kept too. Whatever changes here changes the version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use steadfast_block::{DeviceInfo, Persistence};
use steadfast_devices::filter::record::{
    Action, Durability, Event, Media, Moment, Note, RecordedDevice, Recording,
};
use steadfast_devices::store::{PackedBytes, Store};
use steadfast_runtime::Nanos;

use super::super::calls::{Call, CallDetail, CallKind, Origin};
use super::super::{CallStacks, Contents, Line, ProgramRun};
use super::DEVICE_BYTES_MAX;

/// Bytes of a base in one piece.
const PIECE: u64 = 1 << 20;
/// Devices of a run, at the most.
const DEVICES_MAX: usize = 16;
/// Bytes of a device of which a [`Store`] keeps a table, however few of them are written.
const TABLE: u64 = 1 << 20;
/// So many tables are few: 4 GiB of devices, and less than 64 MiB of memory.
const TABLES_FEW: u64 = 4096;
/// Beyond that, bytes of a file for each table: a sector.
const BYTES_A_TABLE: u64 = 512;

/// Bytes of a processor's cache line, in which persists are kept.
const LINE: u64 = 64;
/// Pieces of a discard, at the most, that are there or not after a cut, each by itself.
const DISCARD_PIECES: u64 = 4097;
/// So many pieces of discards in doubt and lines of persists are few: less than 256 MiB of memory.
/// That is a hundred discards of the whole device without a flush.
const PIECES_FEW: u64 = 1 << 19;
/// Beyond that, bytes of a file for each: what is discarded or persisted was mostly written.
const BYTES_A_PIECE: u64 = 16;
/// What one write(2) can write, at the most (`MAX_RW_COUNT` of the kernel).
const CALL_BYTES_MAX: u64 = 0x7fff_f000;
/// Smallest unit that a power cut leaves old or new: a word of memory.
const UNIT_MIN: u32 = 8;

/// A run.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedRun<'r> {
    about: BTreeMap<String, String>,
    devices: Vec<Device>,
    /// One for each device: what it held at first.
    bases: Vec<Vec<Piece>>,
    first_tick: u64,
    /// Nanoseconds, of each tick.
    times: Vec<u64>,
    requests: Cow<'r, [Event]>,
    notes: Cow<'r, [Note]>,
    lines: Cow<'r, [Line]>,
    calls: Cow<'r, [Call]>,
}

#[derive(Serialize, Deserialize)]
struct Device(#[serde(with = "RecordedDeviceForm")] RecordedDevice);

#[derive(Serialize, Deserialize)]
struct Piece {
    offset: u64,
    bytes: PackedBytes,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RecordedDevice")]
struct RecordedDeviceForm {
    #[serde(with = "DeviceInfoForm")]
    info: DeviceInfo,
    durability: Durability,
    /// Not kept: whoever cuts says it.
    #[serde(skip)]
    media: Media,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DeviceInfo")]
struct DeviceInfoForm {
    name: String,
    model: String,
    size: u64,
    logical_block: u32,
    physical_block: u32,
    atomic_write: u32,
    volatile_cache: bool,
    #[serde(with = "PersistenceForm")]
    persistence: Persistence,
    rotational: bool,
    read_only: bool,
    initialised: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Persistence")]
enum PersistenceForm {
    Persistent,
    Volatile { reason: String },
}

/// The times of ticks that were read.
struct Times {
    first_tick: u64,
    times: Vec<Nanos>,
}

impl Times {
    /// Puts the times of these moments in.
    fn put<'m>(&self, moments: impl IntoIterator<Item = &'m mut Moment>) -> Result<(), String> {
        for moment in moments {
            let place = moment.tick.checked_sub(self.first_tick);
            let time = place.and_then(|place| self.times.get(usize::try_from(place).ok()?));
            let unknown = || format!("tick {}, which was not recorded", moment.tick);
            moment.at = *time.ok_or_else(unknown)?;
        }
        Ok(())
    }
}

impl<'r> SavedRun<'r> {
    pub fn of(run: &'r ProgramRun) -> SavedRun<'r> {
        let (first_tick, times) = run.recording.times();
        SavedRun {
            about: run.about.clone(),
            devices: run.recording.devices().iter().cloned().map(Device).collect(),
            bases: run.bases.iter().map(pieces).collect(),
            first_tick,
            times: times.iter().map(|time| time.0).collect(),
            requests: Cow::Borrowed(run.recording.events()),
            notes: Cow::Borrowed(run.recording.notes()),
            lines: Cow::Borrowed(&run.lines),
            calls: Cow::Borrowed(&run.calls),
        }
    }

    /// The run, if it can be one; else what is wrong, in words. `file_bytes` is how long the file
    /// is.
    pub fn run(self, stacks: CallStacks, file_bytes: u64) -> Result<ProgramRun, String> {
        self.check_spread(TABLES_FEW + file_bytes / BYTES_A_TABLE)?;
        self.check_pieces(PIECES_FEW + file_bytes / BYTES_A_PIECE)?;
        let devices: Vec<RecordedDevice> = self.devices.into_iter().map(|d| d.0).collect();
        let bases = contents(&devices, &self.bases)?;
        let times = self.times.into_iter().map(Nanos).collect();
        let times = Times { first_tick: self.first_tick, times };
        let (mut events, mut notes) = (self.requests.into_owned(), self.notes.into_owned());
        let moments =
            events.iter_mut().flat_map(|e| [Some(&mut e.submitted), e.completed.as_mut()]);
        times.put(moments.flatten())?;
        times.put(notes.iter_mut().map(|note| &mut note.moment))?;
        let (mut lines, mut calls) = (self.lines.into_owned(), self.calls.into_owned());
        times.put(lines.iter_mut().map(|line| &mut line.printed))?;
        let moments = calls.iter_mut().flat_map(|c| [Some(&mut c.started), c.returned.as_mut()]);
        times.put(moments.flatten())?;
        for (place, call) in calls.iter().enumerate() {
            let written = call.contents.filter(|_| call.kind == CallKind::Write);
            if let Some(Contents { size, .. }) = written
                && size > CALL_BYTES_MAX
            {
                return Err(format!("a call that writes {size} bytes"));
            }
            if let CallDetail::Bytes(bytes) = &call.detail
                && written.is_none_or(|contents| contents.size != bytes.len() as u64)
            {
                return Err(format!("a call with {} bytes, and another size", bytes.len()));
            }
            if let Origin::PartOf(first) = call.origin
                && first >= place
            {
                return Err(format!("a part of call {first}"));
            }
        }
        let recording = Recording::rebuild(devices, events, notes, times.times, times.first_tick)
            .map_err(|e| format!("the recording does not fit together: {e}"))?;
        if !stacks.is_whole(calls.len()) {
            return Err("stacks of calls with parts that are not there".into());
        }
        Ok(ProgramRun { about: self.about, bases, recording, lines, calls, stacks })
    }

    /// Refuses contents and writes that lie in more tables, of all devices together.
    fn check_spread(&self, tables_max: u64) -> Result<(), String> {
        let bases = self.bases.iter().zip(0..).flat_map(|(pieces, device)| {
            pieces.iter().map(move |p| (device, p.offset, p.bytes.len()))
        });
        // What has no data takes away, or leaves what is there.
        let written = self.requests.iter().filter_map(|event| match event.action.range() {
            (offset, _, Some(data)) => Some((event.device.0, offset, data.len())),
            (_, _, None) => None,
        });
        let mut tables = BTreeSet::new();
        for (device, offset, len) in bases.chain(written) {
            let end = offset.saturating_add(len as u64);
            let touched = offset / TABLE..end.div_ceil(TABLE);
            tables.extend(touched.map(|table| (device, table)));
            if tables.len() as u64 > tables_max {
                return Err(format!(
                    "its contents lie in more than {tables_max} MiB of devices, a few bytes in each"
                ));
            }
        }
        Ok(())
    }

    /// Refuses more pieces of discards in doubt at one cut, and of persists of the whole run. They
    /// carry no bytes: their length costs a file nothing.
    fn check_pieces(&self, pieces_max: u64) -> Result<(), String> {
        // The first device may be cut as another medium.
        let media = self.about.get("media").and_then(|media| media.parse().ok());
        let media: Media = media.unwrap_or_default();
        let unit = |device: u32| {
            let atomic = self.devices.get(device as usize).map(|d| d.0.info.atomic_write);
            let atomic = atomic.unwrap_or(UNIT_MIN).max(UNIT_MIN);
            u64::from(if device == 0 { media.unit(atomic) } else { atomic })
        };
        // It may begin and end in the middle of one.
        let pieces = |len: u64, piece: u64| (len / piece).saturating_add(2);
        let flushes = self.flushes();
        let mut lines = 0_u64;
        let mut discards: Vec<(u64, i64)> = Vec::new();
        for event in &*self.requests {
            match event.action {
                Action::Persist { len, .. } => lines = lines.saturating_add(pieces(len, LINE)),
                Action::Discard { len, .. } => {
                    let count = pieces(len, unit(event.device.0)).min(DISCARD_PIECES).cast_signed();
                    discards.push((event.submitted.tick, count));
                    let of_other_medium = event.device.0 == 0 && media != Media::default();
                    let durable = self.durable_from(event, &flushes);
                    discards.extend(durable.filter(|_| !of_other_medium).map(|at| (at, -count)));
                }
                Action::Write { .. } | Action::Store { .. } | Action::Flush | Action::Fence => {}
            }
        }
        discards.sort_unstable();
        let mut in_doubt = 0_i64;
        let most = discards.into_iter().map(|(_, count)| {
            in_doubt += count;
            in_doubt
        });
        let most = most.max().unwrap_or(0).cast_unsigned();
        if lines.saturating_add(most) > pieces_max {
            return Err(format!(
                "its discards and persists are of more than {pieces_max} pieces, which is more \
                 than a file of its length may have"
            ));
        }
        Ok(())
    }

    /// Of each device: when its flushes were submitted, ascending, and when the first of this and
    /// the later ones had completed.
    fn flushes(&self) -> BTreeMap<u32, Vec<(u64, u64)>> {
        let mut flushes: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for event in &*self.requests {
            if let (Action::Flush, Some(done), false) =
                (&event.action, event.completed, event.failed)
            {
                let of_device = flushes.entry(event.device.0).or_default();
                of_device.push((event.submitted.tick, done.tick));
            }
        }
        for of_device in flushes.values_mut() {
            of_device.sort_unstable();
            let mut first = u64::MAX;
            for (_, done) in of_device.iter_mut().rev() {
                first = first.min(*done);
                *done = first;
            }
        }
        flushes
    }

    /// The tick from which a discard is in doubt at no cut; `None`: it always is.
    fn durable_from(&self, event: &Event, flushes: &BTreeMap<u32, Vec<(u64, u64)>>) -> Option<u64> {
        let done = event.completed.filter(|_| !event.failed)?.tick;
        let durable = match self.devices.get(event.device.0 as usize)?.0.durability {
            Durability::OnCompletion | Durability::OnStore => done,
            Durability::OnFlush => {
                let flushes = flushes.get(&event.device.0)?;
                flushes.get(flushes.partition_point(|(submitted, _)| *submitted <= done))?.1
            }
            Durability::Lying { .. } => return None,
        };
        // A cut at that tick comes before it.
        durable.checked_add(1)
    }
}

fn pieces(store: &Store) -> Vec<Piece> {
    let of_range = |(offset, len): (u64, u64)| {
        (offset..offset + len).step_by(PIECE as usize).map(move |at| Piece {
            offset: at,
            bytes: PackedBytes::pack(&store.read(at, PIECE.min(offset + len - at))),
        })
    };
    store.populated().flat_map(of_range).collect()
}

/// What the devices held at first.
fn contents(devices: &[RecordedDevice], bases: &[Vec<Piece>]) -> Result<Vec<Store>, String> {
    if !(1..=DEVICES_MAX).contains(&devices.len()) || devices.len() != bases.len() {
        return Err(format!("{} devices, and contents of {}", devices.len(), bases.len()));
    }
    let mut stores = Vec::new();
    for (RecordedDevice { info, .. }, pieces) in devices.iter().zip(bases) {
        let size = info.size;
        if size == 0 || size > DEVICE_BYTES_MAX {
            return Err(format!("a device of {size} bytes"));
        }
        for block in [info.logical_block, info.physical_block, info.atomic_write] {
            if !block.is_power_of_two() {
                return Err(format!("a block of {block}"));
            }
        }
        if info.atomic_write < UNIT_MIN {
            return Err(format!("a device that keeps {} bytes whole", info.atomic_write));
        }
        let mut store = Store::new(size);
        for Piece { offset, bytes } in pieces {
            if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > size) {
                return Err(format!("contents at {offset}, beyond the device's {size} bytes"));
            }
            store.write_packed(*offset, bytes);
        }
        stores.push(store);
    }
    Ok(stores)
}

#[cfg(test)]
impl SavedRun<'_> {
    /// One byte in each of so many MiB of a device of 64 GiB: at the start, or written.
    pub(super) fn spread_out(&mut self, tables: u64, of_base: bool) {
        self.devices[0].0.info.size = super::tests::DISK;
        let mut places = (0..tables).map(|table| table * TABLE);
        let bytes = PackedBytes::pack(&bytes::Bytes::from_static(&[1]));
        if of_base {
            self.bases[0] = places.map(|offset| Piece { offset, bytes: bytes.clone() }).collect();
            return;
        }
        self.repeated(tables, || {
            let offset = places.next().unwrap_or_default();
            Action::Write { offset, data: bytes.clone(), fua: false }
        });
    }

    /// So many requests, one after the other, on a device of 64 GiB, and no others.
    pub(super) fn repeated(&mut self, count: u64, mut action: impl FnMut() -> Action) {
        self.devices[0].0.info.size = super::tests::DISK;
        let first = self.requests[0].submitted.tick;
        let ticks = first - self.first_tick + count + 1;
        self.times = vec![self.times[0]; ticks as usize];
        (self.notes, self.lines, self.calls) = Default::default();
        let one = self.requests[0].clone();
        let request = |tick| {
            let submitted = Moment { tick, at: Nanos::default() };
            let completed = Some(Moment { tick: tick + 1, at: Nanos::default() });
            Event { submitted, completed, action: action(), ..one.clone() }
        };
        self.requests = (first..first + count).map(request).collect();
    }
}
