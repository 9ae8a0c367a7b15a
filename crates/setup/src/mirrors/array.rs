//! A mirror by [`Rules`].

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Payload, Request, Result, check,
};
use steadfast_devices::filter::Window;
use steadfast_runtime::{Mutex, sleep, spawn};

use super::{AckRule, AfterBoot, DATA_AT, Leg, MapWritten, PeerMirror, Rules, Setup, Source};

type Device = Arc<dyn BlockDevice>;

/// The map: a byte for each region, as much as before the data.
const MAP_BYTES: u64 = DATA_AT;
/// Passes of the upkeep without a write until a region is clean.
const IDLE_PASSES: u32 = 2;

/// Where the regions stand.
struct Region {
    dirty: bool,
    /// Writes that not all legs have.
    writers: u32,
    idle: u32,
}

struct State {
    regions: Vec<Region>,
    /// Of each leg, whether it is in use.
    used: Vec<bool>,
    /// Writes that the disks are behind by.
    behind: usize,
}

struct Core {
    rules: Rules,
    setup: Setup,
    legs: Vec<Leg>,
    /// The data of each leg that is there.
    data: Vec<Option<Device>>,
    state: Mutex<State>,
    /// Held while the map is written: one after the other.
    map: Mutex<()>,
    info: DeviceInfo,
}

/// The mirror as a device.
pub(super) struct Array(Arc<Core>);

impl Array {
    /// A mirror that is in use; `dirty`: of each region.
    pub fn up(rules: Rules, legs: Vec<Leg>, setup: Setup, dirty: Option<&[u8]>) -> PeerMirror {
        Array::of_core(Core::kept(rules, legs, setup, dirty), false)
    }

    fn of_core(core: Arc<Core>, by_hand: bool) -> PeerMirror {
        let legs = core.data.clone();
        PeerMirror { volume: Arc::new(Array(core)), legs, by_hand }
    }

    /// Boots after a cut, and copies what its rules say.
    pub fn boot(rules: Rules, legs: Vec<Leg>, setup: Setup) -> Result<PeerMirror> {
        let count = regions(&setup);
        let mut dirty = vec![0; count];
        for leg in legs.iter().filter(|leg| !leg.in_memory) {
            let Some(device) = &leg.device else { continue };
            let map = device.read(0, MAP_BYTES)?;
            // Bits are set before the writes that they are for, and cleared after them: whoever
            // has one knows of more than the others.
            dirty.iter_mut().zip(&map[..]).for_each(|(all, one)| *all |= one);
        }
        let blank: Vec<usize> = (0..legs.len()).filter(|n| legs[*n].in_memory).collect();
        let core = Core::kept(rules, legs, setup, Some(&dirty));
        let believed = rules.after_boot == AfterBoot::Believed;
        if !believed {
            let mut state = core.state.lock();
            blank.iter().for_each(|n| state.used[*n] = false);
        }
        core.resync((0..count).filter(|r| dirty[*r] != 0), None)?;
        for leg in blank.iter().filter(|_| !believed) {
            core.resync(0..count, Some(*leg))?;
            core.state.lock().used[*leg] = true;
        }
        let by_hand = rules.after_boot == AfterBoot::AddedByHand && !blank.is_empty();
        Ok(Array::of_core(core, by_hand))
    }
}

fn regions(setup: &Setup) -> usize {
    // OK to cast: the map has room for so many.
    setup.size.div_ceil(setup.region_bytes).min(MAP_BYTES) as usize
}

impl Core {
    /// A mirror whose regions become clean by themselves.
    fn kept(rules: Rules, legs: Vec<Leg>, setup: Setup, dirty: Option<&[u8]>) -> Arc<Core> {
        let core = Arc::new(Core::new(rules, legs, setup, dirty));
        let (weak, every) = (Arc::downgrade(&core), setup.upkeep);
        spawn("array upkeep", move || {
            loop {
                sleep(every);
                let Some(core) = weak.upgrade() else { return };
                // OK to ignore: a leg that fails leaves the regions dirty.
                drop(core.clean());
            }
        });
        core
    }

    fn new(rules: Rules, legs: Vec<Leg>, setup: Setup, dirty: Option<&[u8]>) -> Core {
        let window = |leg: &Leg| {
            let device = leg.device.clone()?;
            let name = device.info().name;
            // OK to drop the error: a leg without room for the volume is none.
            let window = Window::new(name, device, DATA_AT, setup.size).ok()?;
            Some(Arc::new(window) as Device)
        };
        let data: Vec<Option<Device>> = legs.iter().map(window).collect();
        let region = |n: usize| {
            let dirty = dirty.is_some_and(|map| map[n] != 0);
            Region { dirty, writers: 0, idle: 0 }
        };
        let state = State {
            regions: (0..regions(&setup)).map(region).collect(),
            used: data.iter().map(Option::is_some).collect(),
            behind: 0,
        };
        let mut info = DeviceInfo::new("array", "model of a mirror", setup.size);
        info.volatile_cache = true;
        Core { rules, setup, legs, data, state: Mutex::new(state), map: Mutex::new(()), info }
    }

    fn used(&self) -> Vec<usize> {
        let state = self.state.lock();
        (0..self.legs.len()).filter(|n| state.used[*n]).collect()
    }

    /// A leg has failed: it is out of use, if another one is left.
    fn failed(&self, leg: usize) {
        let mut state = self.state.lock();
        if state.used.iter().filter(|used| **used).count() > 1 {
            state.used[leg] = false;
        }
    }

    fn over(&self, offset: u64, len: u64) -> std::ops::Range<usize> {
        let of = |at: u64| (at / self.setup.region_bytes) as usize;
        of(offset)..of(offset + len.max(1) - 1) + 1
    }

    /// Makes the map durable on the legs that keep it.
    fn write_map(&self) -> Result<()> {
        let _one = self.map.lock();
        let mut map = vec![0; MAP_BYTES as usize];
        let used = {
            let state = self.state.lock();
            let dirty = state.regions.iter().map(|r| u8::from(r.dirty));
            map.iter_mut().zip(dirty).for_each(|(byte, dirty)| *byte = dirty);
            state.used.clone()
        };
        let map = Bytes::from(map);
        let keeps = |n: &usize| used[*n] && !self.legs[*n].in_memory;
        let written: Vec<Completion> = (0..self.legs.len())
            .filter(keeps)
            .filter_map(|n| self.legs[n].device.as_ref())
            .map(|d| d.submit(Request::Write { offset: 0, data: map.clone().into(), fua: true }))
            .collect();
        Completion::wait_all(&written)
    }

    /// Marks the regions of a write; whether the map must be written.
    fn begin(&self, regions: std::ops::Range<usize>) -> bool {
        let mut state = self.state.lock();
        let mut new = false;
        for region in &mut state.regions[regions] {
            new |= !region.dirty;
            region.dirty = true;
            region.writers += 1;
            region.idle = 0;
        }
        new
    }

    fn end(&self, regions: std::ops::Range<usize>) {
        self.state.lock().regions[regions].iter_mut().for_each(|region| region.writers -= 1);
    }

    fn write_all(self: &Arc<Self>, offset: u64, data: &Payload, fua: bool) -> Result<()> {
        let regions = self.over(offset, data.len() as u64);
        let new = self.begin(regions.clone());
        if new && self.rules.map == MapWritten::Before {
            self.write_map()?;
        }
        let mut sent: Vec<(usize, Completion)> = Vec::new();
        for leg in self.used() {
            let Some(device) = &self.data[leg] else { continue };
            let request = Request::Write { offset, data: data.clone(), fua };
            sent.push((leg, device.submit(request)));
        }
        let behind = match self.rules.acknowledged {
            AckRule::EveryLeg => false,
            AckRule::Memory { behind } => {
                let mut state = self.state.lock();
                let may =
                    state.behind < behind && sent.iter().any(|(leg, _)| self.legs[*leg].in_memory);
                state.behind += usize::from(may);
                may
            }
        };
        let (waited, rest): (Vec<_>, Vec<_>) =
            sent.into_iter().partition(|(leg, _)| !behind || self.legs[*leg].in_memory);
        let done = self.wait(waited);
        if behind {
            let core = Arc::clone(self);
            spawn("array behind", move || {
                let others = core.wait(rest);
                core.state.lock().behind -= 1;
                // Without any leg that has it nobody knows what it holds: it stays dirty.
                if others.is_ok() {
                    core.end(regions);
                }
            });
            return done;
        }
        if new && self.rules.map == MapWritten::After {
            self.write_map()?;
        }
        self.end(regions);
        done
    }

    /// Waits for the answers of legs; those that fail are out of use. An error if all have failed.
    fn wait(&self, sent: Vec<(usize, Completion)>) -> Result<()> {
        let mut outcome: Option<BlockError> = None;
        let (mut good, all) = (0, sent.len());
        for (leg, completion) in sent {
            match completion.wait() {
                Ok(_) => good += 1,
                Err(e) => {
                    self.failed(leg);
                    outcome = Some(e);
                }
            }
        }
        match outcome {
            Some(e) if good == 0 && all > 0 => Err(e),
            _ => Ok(()),
        }
    }

    fn read_first(&self, offset: u64, len: u64) -> Result<Bytes> {
        let mut last = None;
        for leg in self.used() {
            let Some(device) = &self.data[leg] else { continue };
            match device.read(offset, len) {
                Ok(data) => return Ok(data),
                Err(e) => {
                    self.failed(leg);
                    last = Some(e);
                }
            }
        }
        let gone = || BlockError::Gone {
            device: self.info.name.clone(),
            reason: "no leg is there".into(),
        };
        Err(last.unwrap_or_else(gone))
    }

    fn flush_all(&self) -> Result<()> {
        let used = self.used().into_iter();
        let flush = |leg: usize| Some((leg, self.data[leg].as_ref()?.submit(Request::Flush)));
        self.wait(used.filter_map(flush).collect())
    }

    /// Regions without a write for some passes become clean, after a flush.
    fn clean(&self) -> Result<()> {
        let idle: Vec<usize> = {
            let mut state = self.state.lock();
            let regions = state.regions.iter_mut().enumerate();
            let idle = regions.filter(|(_, r)| r.dirty && r.writers == 0);
            idle.filter_map(|(n, r)| {
                r.idle += 1;
                (r.idle >= IDLE_PASSES).then_some(n)
            })
            .collect()
        };
        if idle.is_empty() {
            return Ok(());
        }
        self.flush_all()?;
        {
            let mut state = self.state.lock();
            for n in idle {
                let region = &mut state.regions[n];
                region.dirty &= region.writers > 0 || region.idle < IDLE_PASSES;
            }
        }
        self.write_map()
    }

    /// Copies regions from the source to the others in use, or to one leg.
    fn resync(&self, which: impl Iterator<Item = usize>, to: Option<usize>) -> Result<()> {
        let used = self.used();
        let is_disk = |leg: &usize| !self.legs[*leg].in_memory;
        let source = match self.rules.source {
            Source::First => used.first().copied(),
            Source::Disk => used.iter().copied().find(is_disk),
        };
        let Some(source) = source else { return Ok(()) };
        let Some(from) = &self.data[source] else { return Ok(()) };
        let others = used.into_iter().filter(|leg| *leg != source);
        let targets: Vec<usize> = to.map_or_else(|| others.collect(), |leg| vec![leg]);
        for region in which {
            let offset = region as u64 * self.setup.region_bytes;
            let len = self.setup.region_bytes.min(self.setup.size - offset);
            let data = from.read(offset, len)?;
            for leg in &targets {
                if let Some(device) = &self.data[*leg] {
                    device.write(offset, data.clone().into())?;
                }
            }
        }
        self.flush_all()
    }
}

impl BlockDevice for Array {
    fn info(&self) -> DeviceInfo {
        self.0.info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Err(refused) = check(&self.0.info, &request) {
            return Completion::ready(Err(refused));
        }
        let core = Arc::clone(&self.0);
        Completion::on_task("array request", move || {
            let nothing = |()| Bytes::new();
            match request {
                Request::Read { offset, len } => core.read_first(offset, len),
                Request::Write { offset, data, fua } => {
                    core.write_all(offset, &data, fua).map(nothing)
                }
                Request::Flush => core.flush_all().map(nothing),
                // Of a discard nothing is promised: it is not done.
                Request::Discard { .. } => Ok(Bytes::new()),
            }
        })
    }
}
