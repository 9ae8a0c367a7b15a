//! What is shown: rows made of two readings.

use std::cmp::Ordering;
use std::time::Duration;
use steadfast_vfs::path::shown;

use clap::ValueEnum;
use steadfast_stack::protocol::{Counters, LegStatus, StackStatus, VolumeStatus};

use super::source::Reading;

/// What is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Sort {
    /// As they are assembled: by name, volumes after what they are made of
    #[default]
    Name,
    /// Most bytes read
    Read,
    /// Most bytes written
    Write,
    /// Most requests being served
    Queue,
    /// Slowest
    Latency,
}

impl Sort {
    /// The one `by` places further.
    pub fn turned(self, by: usize) -> Sort {
        let all = Sort::value_variants();
        let at = all.iter().position(|sort| *sort == self).unwrap_or(0);
        all[(at + by) % all.len()]
    }

    /// The one before.
    pub fn before(self) -> Sort {
        self.turned(Sort::value_variants().len() - 1)
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Read => "read/s",
            Sort::Write => "write/s",
            Sort::Queue => "queue",
            Sort::Latency => "ms",
        }
    }
}

/// Rates and means over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// Flushes a second.
    pub flushes: f64,
    /// Bytes read a second.
    pub read_bytes: f64,
    /// Bytes written a second.
    pub written_bytes: f64,
    /// Mean number of requests being served.
    pub queue: f64,
    /// Mean milliseconds of a request; `None`: there was none.
    pub latency_ms: Option<f64>,
}

impl Rates {
    /// From one reading to the next. A counter that went back, because the device was made anew,
    /// counts from zero.
    fn between(before: &Counters, now: &Counters, ns: u64) -> Rates {
        let ns = ns.max(1) as f64;
        let since = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now) as f64;
        let rate = |before, now| since(before, now) * 1e9 / ns;
        let requests = since(before.reads, now.reads)
            + since(before.writes, now.writes)
            + since(before.flushes, now.flushes);
        let length = since(before.run_len_ns, now.run_len_ns);
        Rates {
            reads: rate(before.reads, now.reads),
            writes: rate(before.writes, now.writes),
            flushes: rate(before.flushes, now.flushes),
            read_bytes: rate(before.read_bytes, now.read_bytes),
            written_bytes: rate(before.written_bytes, now.written_bytes),
            queue: length / ns,
            latency_ms: (requests > 0.0).then(|| length / requests / 1e6),
        }
    }
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name; of a leg after its place.
    pub name: String,
    /// It belongs to the volume above.
    pub is_part: bool,
    /// What went through it.
    pub rates: Rates,
    /// Dirty regions of a volume, regions that a leg lacks.
    pub dirty: Option<u64>,
    /// What it is, or how it is.
    pub state: String,
    /// It needs attention.
    pub alarm: bool,
}

/// What is shown, and how.
#[derive(Default)]
pub struct View {
    before: Reading,
    now: Reading,
    /// What is first.
    pub sort: Sort,
    /// Between two readings.
    pub interval: Duration,
    /// Rows above the first that is shown.
    pub scrolled: usize,
    /// The columns are explained.
    pub explains: bool,
    /// Why there is no reading.
    pub problem: Option<String>,
}

impl View {
    /// With nothing to show yet.
    pub fn new(sort: Sort, interval: Duration) -> View {
        View { sort, interval, ..View::default() }
    }

    /// Goes on to the next reading.
    pub fn take(&mut self, reading: Reading) {
        self.problem = None;
        self.before = std::mem::replace(&mut self.now, reading);
        // Another process has begun anew; so has this view, with its first reading.
        if self.before.stack.pid != self.now.stack.pid {
            self.before = Reading { stack: self.now.stack.clone(), ..Reading::default() };
        }
    }

    /// What there is.
    pub fn stack(&self) -> &StackStatus {
        &self.now.stack
    }

    fn rates(&self, name: &str) -> Rates {
        let of = |reading: &Reading| reading.counters.of.iter().find(|c| c.name == name).cloned();
        let ns = self.now.counters.now_ns.saturating_sub(self.before.counters.now_ns);
        let Some(now) = of(&self.now) else { return Rates::default() };
        Rates::between(&of(&self.before).unwrap_or_default(), &now, ns)
    }

    /// Everything, volumes first, each with its components below it; then devices that are in no
    /// volume.
    pub fn rows(&self) -> Vec<Row> {
        let stack = self.stack();
        let mut groups: Vec<Vec<Row>> = stack.volumes.iter().map(|v| self.volume(v)).collect();
        let free = stack.devices.iter().filter(|device| device.used_by.is_none());
        groups.extend(free.map(|device| {
            let state = device.problem.as_deref().unwrap_or("device");
            let alarm = device.problem.is_some();
            vec![Row { is_part: false, alarm, ..self.part(&device.name, state) }]
        }));
        let key = |group: &Vec<Row>| {
            let rates = group.first().map(|row| row.rates).unwrap_or_default();
            match self.sort {
                Sort::Name => 0.0,
                Sort::Read => rates.read_bytes,
                Sort::Write => rates.written_bytes,
                Sort::Queue => rates.queue,
                Sort::Latency => rates.latency_ms.unwrap_or(0.0),
            }
        };
        groups.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal));
        groups.into_iter().flatten().collect()
    }

    fn volume(&self, volume: &VolumeStatus) -> Vec<Row> {
        let mut state = volume.kind.name().to_owned();
        let mut dirty = None;
        let mut alarm = volume.problem.is_some();
        if let Some(mirror) = &volume.mirror {
            dirty = Some(u64::from(mirror.regions.dirty + mirror.regions.filling));
            alarm |= !mirror.whole;
            if let Some(resync) = &mirror.resync {
                state = format!("{state}, {} %", resync.percent());
            } else if !mirror.whole {
                state = format!("{state}, !");
            }
        }
        let state = volume.problem.as_deref().unwrap_or(&state);
        let row = Row { is_part: false, dirty, alarm, ..self.part(&volume.name, state) };
        let mut rows = vec![row];
        match &volume.mirror {
            Some(mirror) => {
                let region = mirror.region_bytes.max(1);
                rows.extend(mirror.legs.iter().map(|leg| self.leg(leg, region)));
                rows.extend(mirror.spares.iter().map(|name| self.part(name, "spare")));
            }
            None => rows.extend(volume.components.iter().map(|name| self.part(name, ""))),
        }
        rows
    }

    fn leg(&self, leg: &LegStatus, region: u64) -> Row {
        let sound = leg.state == "Okay" || leg.state == "Resyncing" || leg.volatile;
        Row {
            dirty: Some(leg.lacking_bytes.div_ceil(region)),
            alarm: !sound,
            ..self.part(&leg.component, &leg.state)
        }
    }

    fn part(&self, name: &str, state: &str) -> Row {
        Row {
            name: shown(name.as_bytes()),
            is_part: true,
            rates: self.rates(name),
            dirty: None,
            state: shown(state.as_bytes()),
            alarm: false,
        }
    }
}
