//! What a figure measures: an access in a few words, and how often a model does it in a second.

use std::fmt;
use std::str::FromStr;

use steadfast_block::DirectMemory;
use steadfast_devices::model::ModelParams;
use steadfast_setup::form::{FormValue, Value, did_you_mean};

use crate::calibrate::probe::{KIB, MIB, Op, Prober, REQUEST_MAX, Requests, Times, place};
use crate::calibrate::{Result, figures};

/// How often something is done at most, and for how many seconds.
const TIMES: Times = Times(16_000, 4.0);

/// What is done, in the words of a figure's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    DurableWrite,
    WriteAndFlush,
    Load,
    NtStore,
    StoreAndClwb,
}

use Access::{DurableWrite, Load, NtStore, Read, StoreAndClwb, Write, WriteAndFlush};

const ACCESSES: [(&str, Access); 7] = [
    ("read", Read),
    ("write", Write),
    ("durable write", DurableWrite),
    ("write and flush", WriteAndFlush),
    ("load", Load),
    ("ntstore", NtStore),
    ("store and clwb", StoreAndClwb),
];

impl Access {
    /// Whether it is done by the processor, to memory.
    fn is_of_memory(self) -> bool {
        matches!(self, Load | NtStore | StoreAndClwb)
    }

    fn perform(self, r: &Requests, at: u64, len: u64) -> Result<()> {
        let op = match self {
            Read => Op::Read,
            Write | WriteAndFlush => Op::Write,
            DurableWrite => Op::Durable,
            // OK to expect: `refusal` has looked.
            _ => return self.of_memory(r.device.direct_memory().expect("memory"), r, at, len),
        };
        r.timed(r.of(op, at, len))?;
        if self == WriteAndFlush {
            r.device.flush()?;
        }
        Ok(())
    }

    fn of_memory(self, memory: &dyn DirectMemory, r: &Requests, at: u64, len: u64) -> Result<()> {
        let data = &r.data[..len as usize];
        match self {
            NtStore => memory.store_through(at, data)?,
            StoreAndClwb => {
                memory.store(at, data)?;
                memory.persist(at, len)?;
            }
            _ => return Ok(memory.load(at, &mut vec![0; len as usize])?),
        }
        Ok(memory.fence()?)
    }
}

/// What a figure measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    sequential: bool,
    access: Access,
    /// Bytes each time.
    pub bytes: u64,
    /// How many are under way at a time.
    pub at_once: u64,
}

impl Pattern {
    /// Why it cannot be measured on a device of these parameters.
    pub(super) fn refusal(&self, params: &ModelParams) -> Option<String> {
        let (kind, access) = (params.kind(), self.access);
        if access.is_of_memory() && !kind.is_memory {
            return Some(format!("a device of kind `{}` is not memory", kind.name));
        }
        let is_odd = !access.is_of_memory() && !self.bytes.is_multiple_of(512);
        (is_odd || self.bytes > REQUEST_MAX)
            .then(|| "requests are of whole sectors of 512 bytes and at most 1 MiB".to_owned())
    }

    /// How often it is done in a second, with buffers as full as they get.
    pub(super) fn rate(self, p: &mut Prober<'_>, within: Option<u64>) -> Result<f64> {
        let Pattern { sequential, access, bytes: len, at_once } = self;
        let writes = matches!(access, Write | DurableWrite | WriteAndFlush);
        let usual = if writes { figures::area(p).end } else { p.size };
        let end = within.unwrap_or(usual);
        if writes {
            figures::filled(p, end, f64::INFINITY)?;
        }
        let (rate, _) = p.several(at_once, TIMES, move |requests, rng, number| {
            let at = match sequential {
                true => number as u64 % (end / len) * len,
                false => place(rng, &(0..end), len),
            };
            access.perform(requests, at, len)
        })?;
        Ok(rate)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.sequential { "sequential" } else { "random" };
        let access = ACCESSES.iter().find(|(_, access)| *access == self.access);
        let (n, unit) = match self.bytes {
            n if n.is_multiple_of(MIB) => (n / MIB, "MiB"),
            n if n.is_multiple_of(KIB) => (n / KIB, "KiB"),
            n => (n, "B"),
        };
        write!(f, "{order} {} {n} {unit}", access.map_or("", |(name, _)| name))?;
        match self.at_once {
            1 => Ok(()),
            n => write!(f, ", {n} at once"),
        }
    }
}

/// What a name must be.
const GRAMMAR: &str = "write it as `random read 4 KiB`, `sequential write 1 MiB, 32 at once`, \
                       `random write and flush 512 B`";

impl FromStr for Pattern {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Pattern, String> {
        let grammar = || GRAMMAR.to_owned();
        let (one, at_once) = match name.strip_suffix(" at once") {
            Some(rest) => rest.rsplit_once(", ").ok_or_else(grammar)?,
            None => (name, "1"),
        };
        let at_once = at_once.parse().ok().filter(|n| (1..=1024).contains(n));
        let at_once = at_once.ok_or("from 1 to 1024 can be at once")?;
        let (rest, unit) = one.rsplit_once(' ').ok_or_else(grammar)?;
        let (rest, size) = rest.rsplit_once(' ').ok_or_else(grammar)?;
        let (order, access) = rest.split_once(' ').ok_or_else(grammar)?;
        let unit = [("B", 1), ("KiB", KIB), ("MiB", MIB)].iter().find(|(name, _)| *name == unit);
        let size = size.parse().ok().filter(|n| (1..=1 << 20).contains(n));
        let bytes = size.zip(unit).map(|(n, (_, unit)): (u64, _)| n * unit).ok_or_else(grammar)?;
        let sequential = match order {
            "sequential" => true,
            "random" => false,
            _ => return Err(grammar()),
        };
        let known = ACCESSES.iter().find(|(name, _)| *name == access);
        let (_, access) =
            *known.ok_or_else(|| did_you_mean(access, ACCESSES.iter().map(|(name, _)| *name)))?;
        Ok(Pattern { sequential, access, bytes, at_once })
    }
}

impl Value for Pattern {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let name: String = place.single()?;
        let wrong = |help| place.wrong(format!("there is no figure `{name}`"), help);
        name.parse().map_err(wrong).ok()
    }
}

/// Of a figure's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit(&'static (&'static str, Scale));

/// A time, or a number of bytes or of times in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Seconds(f64),
    Bytes(f64),
    Times,
}

const UNITS: [(&str, Scale); 7] = [
    ("ns", Scale::Seconds(1e-9)),
    ("us", Scale::Seconds(1e-6)),
    ("/s", Scale::Times),
    ("KiB/s", Scale::Bytes(1024.0)),
    ("MB/s", Scale::Bytes(1e6)),
    ("MiB/s", Scale::Bytes(1048576.0)),
    ("GB/s", Scale::Bytes(1e9)),
];

impl Unit {
    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        self.0.0
    }

    /// Something that is done so often a second, so many at once, in this unit.
    pub(super) fn of_rate(self, rate: f64, bytes: u64, at_once: u64) -> f64 {
        match self.0.1 {
            Scale::Seconds(unit) => at_once as f64 / rate / unit,
            Scale::Bytes(unit) => rate * bytes as f64 / unit,
            Scale::Times => rate,
        }
    }
}

impl Value for Unit {
    fn read(place: &FormValue<'_>) -> Option<Self> {
        let word: String = place.single()?;
        let known = UNITS.iter().find(|(name, _)| *name == word);
        if known.is_none() {
            let help = did_you_mean(&word, UNITS.iter().map(|(name, _)| *name));
            place.wrong(format!("there is no unit `{word}`"), help);
        }
        known.map(Unit)
    }
}
