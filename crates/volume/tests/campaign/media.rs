//! Legs whose power can be cut: a store, a volatile cache, faults, and time.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::cache::{CacheSettings, WriteCache};
use steadfast_devices::filter::fault::{Effect, Fault, FaultRule, Faults, Ops};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_volume::NewLeg;

/// Bytes of a leg's device.
pub const LEG_BYTES: u64 = 3 << 20;

/// What keeps its contents, or does not, while the computer is switched off.
pub struct Medium {
    pub name: String,
    pub volatile: bool,
    /// It has room for some regions only.
    pub partial: bool,
    ram: Ram,
    cache: WriteCache,
}

/// A medium in a computer that is switched on: another handle after every cut.
pub struct Plugged {
    pub device: Arc<dyn BlockDevice>,
    pub faults: Faults,
}

impl Medium {
    pub fn new(name: &str, volatile: bool, contents: Store) -> Medium {
        let ram = Ram::from_store(name, contents);
        let ram = if volatile { ram } else { ram.persistent() };
        let settings = CacheSettings { capacity: 256 << 10, lying: false };
        let cache = WriteCache::new(Arc::new(ram.clone()), settings);
        Medium { name: name.into(), volatile, partial: false, ram, cache }
    }

    /// A new device that holds something: what is not written must not be read.
    pub fn used(name: &str, volatile: bool, rng: &mut Rng) -> Medium {
        let mut store = Store::new(LEG_BYTES);
        let junk: Vec<u8> = (0..4096).map(|_| rng.bits() as u8).collect();
        for at in (65536..LEG_BYTES).step_by(4096) {
            store.write_slice(at, &junk);
        }
        Medium::new(name, volatile, store)
    }

    /// Memory with room for some regions.
    pub fn small(name: &str, frames: u64) -> Medium {
        let store = Store::new((64 << 10) * (1 + frames) + 4096);
        Medium { partial: true, ..Medium::new(name, true, store) }
    }

    /// Memory or not, and if it is, large or small.
    pub fn any(name: &str, volatile: bool, rng: &mut Rng) -> Medium {
        match volatile && rng.percent(50) {
            true => Medium::small(name, 1 + rng.below(6)),
            false => Medium::used(name, volatile, rng),
        }
    }

    /// As a new leg.
    pub fn leg(&self, plugged: &Plugged) -> NewLeg {
        let device = Arc::clone(&plugged.device);
        NewLeg { partial: self.partial, ..NewLeg::new(device) }
    }

    /// Switched on: with a time that requests take.
    pub fn plug(&self, micros: u64) -> Plugged {
        let fault = Fault::new(match self.volatile {
            true => Arc::new(self.ram.clone()) as Arc<dyn BlockDevice>,
            false => Arc::new(self.cache.clone()),
        });
        let faults = fault.faults();
        let plugged = Plugged { device: Arc::new(fault), faults };
        plugged.slow(micros);
        plugged
    }

    /// The power is gone; the handles in use are dead already.
    pub fn cut(&self, seed: u64) {
        if self.volatile {
            self.ram.replace(Store::new(self.ram.info().size));
            return;
        }
        self.cache.power_cut(seed).unwrap();
        self.cache.power_on();
    }

    /// What is below the cache.
    pub fn ram(&self) -> Ram {
        self.ram.clone()
    }

    pub fn contents(&self) -> Store {
        self.ram.store()
    }
}

impl Plugged {
    /// Takes the handle from whoever holds it: now, and for ever.
    pub fn unplug(&self) {
        self.faults.take_away("the power was cut");
    }

    pub fn slow(&self, micros: u64) {
        self.faults.add(FaultRule::new(Ops::ALL, Effect::Delay(Duration::from_micros(micros))));
    }

    /// Replaces all rules: the fault comes before the delay.
    pub fn with(&self, rule: Option<FaultRule>, micros: u64) {
        self.faults.clear();
        if let Some(rule) = rule {
            self.faults.add(rule);
        }
        self.slow(micros);
    }
}
