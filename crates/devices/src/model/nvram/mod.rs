//! A battery-backed memory card on the PCI bus.
//!
//! # Where the figures of the preset come from
//!
//! Micro Memory MM-5425CN with 256 MB: PCI 64 bit, 66 MHz, 533 MB/s at most, two rechargeable
//! batteries. How a host talks to it: Linux `drivers/block/umem.c` and `umem.h` (version 2.3).
//! The driver puts one descriptor of 64 bytes a piece of memory (at most a page of 4 KiB) into a
//! chain of at most 128, starts the card's DMA engine on the chain, and at its interrupt answers
//! all requests of the chain and starts the next. So a request costs its share of the bus, an
//! overhead a descriptor and, at the end of the chain, an interrupt during which the engine is
//! idle.
//!
//! Assumed: bursts of 512 bytes, each after 16 clocks of arbitration, address and first access
//! (the PCI specification gives a target 16 clocks to its first data phase); 2.5 us to fetch and
//! close a descriptor (41 clocks of bus for 64 bytes in and a status word out, and the engine's
//! own work); 10 us from the interrupt to the next chain.
//!
//! # States
//!
//! The contents are persistent while enough batteries are good. A card that was never
//! initialised has random bits in its memory with check bits that do not fit: reading a sector
//! that was never written fails. It counts as initialised once every sector has been written.
//!
//! Refusing such a card as a journal is not done here but by whoever opens one, from
//! [`DeviceInfo::unfit_to_persist`].

mod card;
mod params;

use std::sync::Arc;

use steadfast_block::{
    BlockDevice, Completion, DeviceInfo, Payload, Persistence, Request, Result as BlockResult,
};
use steadfast_runtime::Mutex;

use super::engine::Engine;
use super::parameters::{Describe, ModelKind, describe_parameters};
use super::{Model, ModelError, ModelParams};
use crate::store::Store;
use card::Card;
pub use params::{Battery, NvramParams};

/// A modelled NVRAM card.
pub struct Nvram {
    engine: Engine<Card>,
    info: DeviceInfo,
    batteries_needed: usize,
    batteries: Mutex<Vec<Battery>>,
}

impl Nvram {
    /// A card, working in the caller's world.
    ///
    /// # Errors
    /// [`ModelError::Parameter`] names the parameter that makes no sense.
    pub fn new(name: &str, params: &NvramParams) -> Result<Self, ModelError> {
        let derived = params.derive()?;
        let size = derived.size;
        let info = DeviceInfo::new(name, params.description.clone(), size);
        let card = Card::new(derived, params.initialised);
        Ok(Nvram {
            engine: Engine::start(name, card, size, params.queue_depth.into()),
            info,
            batteries_needed: params.batteries_needed as usize,
            batteries: Mutex::new(params.batteries.to_vec()),
        })
    }

    /// Changes the state of a battery, counted from 1. There are two; others do not exist and
    /// nothing happens.
    pub fn set_battery(&self, number: usize, state: Battery) {
        if let Some(b) = self.batteries.lock().get_mut(number.wrapping_sub(1)) {
            *b = state;
        }
    }

    /// Writes zeros to the whole card, which takes its time, so that every sector can be read.
    ///
    /// # Errors
    /// That of the first write that fails.
    pub fn initialise(&self) -> BlockResult<()> {
        const PIECE: u64 = 1 << 20;
        let zeros = bytes::Bytes::from(vec![0; PIECE as usize]);
        let mut offset = 0;
        while offset < self.info.size {
            let len = PIECE.min(self.info.size - offset);
            self.write(offset, Payload::from(zeros.slice(..len as usize)))?;
            offset += len;
        }
        Ok(())
    }

    fn persistence(&self) -> Persistence {
        let batteries = self.batteries.lock();
        let good = batteries.iter().filter(|b| **b == Battery::Good).count();
        if good >= self.batteries_needed {
            return Persistence::Persistent;
        }
        let states: Vec<String> = (1..)
            .zip(batteries.iter())
            .map(|(n, b)| format!("battery {n} {}", b.in_words()))
            .collect();
        let (states, needed) = (states.join(", "), self.batteries_needed);
        let reason = match good {
            0 => format!("no battery is good ({states})"),
            _ => format!("only {good} of the {needed} batteries it needs is good ({states})"),
        };
        Persistence::Volatile { reason }
    }
}

impl BlockDevice for Nvram {
    fn info(&self) -> DeviceInfo {
        let mut info = self.info.clone();
        info.persistence = self.persistence();
        info.initialised = self.engine.with_physics(|card| card.is_initialised());
        info
    }

    fn submit(&self, request: Request) -> Completion {
        self.engine.submit(&self.info, request)
    }
}

impl Model for Nvram {
    fn contents(&self) -> Store {
        self.engine.contents()
    }

    /// Also makes the card initialised: contents given are contents written.
    fn set_contents(&self, contents: Store) -> Result<(), ModelError> {
        self.engine.set_contents(contents)?;
        self.engine.with_physics(Card::set_initialised);
        Ok(())
    }
}

impl Describe for NvramParams {
    const KIND: ModelKind = ModelKind {
        name: "nvram",
        title: "battery-backed memory card",
        preset: "Micro Memory MM-5425CN, 256 MB",
        physics: "bus clocks, bursts, descriptors, interrupts; batteries; initialised or not",
        parameters: NvramParams::PARAMETERS,
        is_memory: false,
        default: || ModelParams::Nvram(NvramParams::default()),
        test_disk_bytes_min: None,
    };

    describe_parameters!();

    fn description(&self) -> String {
        self.description.clone()
    }

    fn check(&self) -> Result<(), ModelError> {
        self.derive().map(drop)
    }

    fn build(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Nvram::new(name, self)?))
    }

    fn bytes(&self) -> u64 {
        u64::from(self.size_mib) << 20
    }

    fn test_disk(self, bytes: u64) -> Self {
        // OK to cast: `check` refuses what is too large.
        NvramParams { size_mib: (bytes >> 20) as u32, ..self }
    }
}

#[cfg(test)]
mod tests;
