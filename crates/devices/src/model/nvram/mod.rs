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

use steadfast_block::{BlockDevice, DeviceInfo, Payload, Result as BlockResult};

use super::ModelParams;
use super::engine::Engine;
use super::parameters::{Describe, ModelKind, ParameterTable};
use super::units::mib;
use card::Card;

pub use super::Battery;
pub use params::NvramParams;

/// A modelled NVRAM card.
pub type Nvram = Engine<Card>;

impl Nvram {
    /// Changes the state of a battery, counted from 1. There are two; others do not exist and
    /// nothing happens.
    pub fn set_battery(&self, number: usize, state: Battery) {
        self.with_physics(|card| {
            if let Some(battery) = card.batteries.get_mut(number.wrapping_sub(1)) {
                *battery = state;
            }
        });
    }

    /// Writes zeros to the whole card, which takes its time, so that every sector can be read.
    ///
    /// # Errors
    /// That of the first write that fails.
    pub fn initialise(&self) -> BlockResult<()> {
        const PIECE: u64 = 1 << 20;
        let zeros = Payload::from(vec![0; PIECE as usize]);
        let pieces = self.info().size / PIECE;
        (0..pieces).try_for_each(|piece| self.write(piece * PIECE, zeros.clone()))
    }
}

impl Describe for NvramParams {
    const KIND: ModelKind = ModelKind {
        name: "nvram",
        title: "battery-backed memory card",
        preset: "Micro Memory MM-5425CN, 256 MB",
        physics: "bus clocks, bursts, descriptors, interrupts; batteries; initialised or not",
        parameters: Self::PARAMETERS,
        is_memory: false,
        default: || ModelParams::Nvram(NvramParams::default()),
        test_disk_bytes_min: None,
    };

    fn info(&self, name: &str) -> DeviceInfo {
        DeviceInfo::new(name, self.description.clone(), mib(self.size_mib))
    }

    fn test_disk(self, bytes: u64) -> Self {
        // OK to cast: `check` refuses what is too large.
        NvramParams { size_mib: (bytes >> 20) as u32, ..self }
    }
}

#[cfg(test)]
mod tests;
