//! A mirror of some legs, whose power can be cut and whose requests can be held.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{
    AssembleOptions, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy, assemble, create_mirror,
};

use crate::campaign::media::{Medium, Plugged};
use crate::campaign::truth::bytes_of;
use crate::gate::Gate;

pub type Device = Arc<dyn BlockDevice>;

pub const REGION: u64 = 64 << 10;
pub const BLOCK: u64 = 4096;
/// Where the legs' data begins.
pub const DATA: u64 = 64 << 10;

/// Legs with old data on them, and the mirror that they are.
pub struct Bench {
    pub disks: Vec<Medium>,
    pub mirror: Mirror,
    pub plugs: Vec<Plugged>,
    pub gates: Vec<Gate>,
}

pub fn options() -> MirrorOptions {
    MirrorOptions {
        size: Some(1 << 20),
        region_bytes: Some(REGION as u32),
        ..MirrorOptions::default()
    }
}

fn gates(plugs: &[Plugged]) -> Vec<Gate> {
    plugs.iter().map(|p| Gate::new(Arc::clone(&p.device))).collect()
}

/// Of legs that are volatile or not.
pub fn bench(volatile: &[bool]) -> Bench {
    bench_with(volatile, &options())
}

pub fn bench_with(volatile: &[bool], options: &MirrorOptions) -> Bench {
    let mut rng = Rng::new(1);
    let disks = volatile.iter().enumerate();
    let disks = disks.map(|(n, v)| Medium::used(&format!("leg{n}"), *v, &mut rng)).collect();
    bench_of_with(disks, options)
}

/// Of these.
pub fn bench_of(disks: Vec<Medium>) -> Bench {
    bench_of_with(disks, &options())
}

pub fn bench_of_with(disks: Vec<Medium>, options: &MirrorOptions) -> Bench {
    let plugs: Vec<_> = disks.iter().map(|d| d.plug(10)).collect();
    let gates = gates(&plugs);
    let legs = disks.iter().zip(&gates).map(|(disk, gate)| NewLeg {
        partial: disk.partial,
        ..NewLeg::new(Arc::new(gate.clone()))
    });
    let legs: Vec<NewLeg> = legs.collect();
    let mirror = create_mirror("m", &legs, options).unwrap();
    Bench { disks, mirror, plugs, gates }
}

impl Bench {
    /// Cuts the power of everything, losing all that was not flushed or keeping some.
    pub fn cut(&mut self, seed: u64) {
        self.plugs.iter().for_each(|p| p.unplug());
        self.gates.iter().for_each(Gate::open);
        self.disks.iter().for_each(|d| d.cut(seed));
        self.plugs = self.disks.iter().map(|d| d.plug(10)).collect();
        self.gates = gates(&self.plugs);
    }

    /// What a leg's device holds now, for [`restore`](Self::restore).
    pub fn copy(&self, leg: usize) -> Store {
        self.disks[leg].contents()
    }

    /// Puts an old copy of a leg, or anything else, in its place, while the power is off.
    pub fn restore(&mut self, leg: usize, contents: Store) {
        let name = self.disks[leg].name.clone();
        self.disks[leg] = Medium::new(&name, false, contents);
        self.plugs[leg] = self.disks[leg].plug(10);
        self.gates[leg] = Gate::new(Arc::clone(&self.plugs[leg].device));
    }

    pub fn device(&self, leg: usize) -> Device {
        Arc::new(self.gates[leg].clone())
    }

    pub fn devices(&self, which: &[usize]) -> Vec<Device> {
        which.iter().map(|n| self.device(*n)).collect()
    }

    pub fn assemble(&mut self, which: &[usize], options: &AssembleOptions) -> Result<(), String> {
        let mut found = assemble(&self.devices(which), options);
        match found.volumes.pop() {
            Some(volume) => self.mirror = volume.mirror.unwrap(),
            None => return Err(found.problems[0].1.to_string()),
        }
        Ok(())
    }

    pub fn write(&self, block: u64, tag: u64) {
        self.mirror.write(block * BLOCK, bytes_of(tag, block).into()).unwrap();
    }

    pub fn is(&self, block: u64, tag: u64) -> bool {
        self.mirror.read(block * BLOCK, BLOCK).unwrap() == bytes_of(tag, block)
    }

    pub fn state(&self, slot: usize) -> LegState {
        self.mirror.status().legs.iter().find(|l| l.slot == slot).unwrap().state
    }

    /// Changes the labels.
    pub fn relabel(&self) {
        self.mirror.set_policies(self.mirror.policies()).unwrap();
    }

    /// All that was written becomes clean.
    pub fn settle(&self) {
        (0..3).for_each(|_| self.mirror.tick().unwrap());
    }

    /// Reads the same from every leg.
    pub fn is_everywhere(&self, block: u64, tag: u64) -> bool {
        (0..4).all(|slot| {
            let read = ReadPolicy::Preferred(slot);
            self.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
            self.is(block, tag)
        })
    }
}

pub fn simulated(body: fn()) {
    Sim::new(5).run(body).unwrap();
}

pub fn plain() -> AssembleOptions {
    AssembleOptions::default()
}

pub fn degraded() -> AssembleOptions {
    AssembleOptions { degraded: true, ..AssembleOptions::default() }
}
