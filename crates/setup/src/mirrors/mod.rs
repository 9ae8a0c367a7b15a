//! Models of other people's arrangements of disks and a device in memory: what they acknowledge,
//! what they remember, and what they believe after a boot.
//!
//! Each is as small as the question is: what does a power cut take? They keep no names and no
//! states for people, move no data but where the original does, and every leg but those in memory
//! is taken to be as durable as it says. What an original does is in its [`Rules`], with where that
//! is known from; what is not known is decided in its favour.
//!
//! A leg holds its map of dirty regions first, then its data.

mod array;
mod cache;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;

use array::Array;
use cache::MemoryCache;
pub use rules::{AckRule, AfterBoot, MapWritten, Rules, Source};

/// A leg: a device, and whether it loses its contents with the power.
#[derive(Clone)]
pub struct Leg {
    /// The device; `None`: it is not there.
    pub device: Option<Arc<dyn BlockDevice>>,
    /// It is memory.
    pub in_memory: bool,
}

/// Whose arrangement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// A mirror by these rules.
    Mirror(Rules),
    /// The same, to be found: it breaks a rule that a mirror must keep.
    Control(Rules),
    /// A disk behind a cache in memory that is written back: the leg in memory and the first disk.
    WriteBackCache,
}

/// How it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Bytes of the volume; the legs must have room for it and 64 KiB more.
    pub size: u64,
    /// Bytes of a region of the map.
    pub region_bytes: u64,
    /// How often regions that have become clean are looked for, and after how long a cache writes
    /// back.
    pub upkeep: Duration,
}

/// It is up.
pub struct PeerMirror {
    /// The volume.
    pub volume: Arc<dyn BlockDevice>,
    /// What each leg holds of the volume, read past the arrangement.
    pub legs: Vec<Option<Arc<dyn BlockDevice>>>,
    /// Somebody had to do something before all legs were in use again.
    pub by_hand: bool,
}

impl Arrangement {
    /// All that a scenario can name.
    pub const ALL: [(&'static str, Arrangement); 7] = [
        ("svm", Arrangement::Mirror(Rules::SVM)),
        ("svm-recreated", Arrangement::Mirror(Rules::SVM_RECREATED)),
        ("md", Arrangement::Mirror(Rules::MD)),
        ("write-back-cache", Arrangement::WriteBackCache),
        ("plain", Arrangement::Mirror(Rules::PLAIN)),
        ("control-late-map", Arrangement::Control(Rules::LATE_MAP)),
        ("control-volatile-source", Arrangement::Control(Rules::VOLATILE_SOURCE)),
    ];

    /// Whether it is there to be found: it breaks a rule that a mirror must keep.
    pub fn is_control(self) -> bool {
        matches!(self, Arrangement::Control(_))
    }

    /// Makes it of legs that all hold zeros.
    pub fn create(self, legs: Vec<Leg>, setup: Setup) -> PeerMirror {
        match self {
            Arrangement::Mirror(rules) | Arrangement::Control(rules) => {
                Array::up(rules, legs, setup, None)
            }
            Arrangement::WriteBackCache => MemoryCache::up(&legs, setup),
        }
    }

    /// Boots after a cut, and resyncs: legs in memory are blank.
    ///
    /// # Errors
    /// No leg that it would use can be read.
    pub fn boot(self, legs: Vec<Leg>, setup: Setup) -> steadfast_block::Result<PeerMirror> {
        match self {
            Arrangement::Mirror(rules) | Arrangement::Control(rules) => {
                Array::boot(rules, legs, setup)
            }
            Arrangement::WriteBackCache => Ok(MemoryCache::up(&legs, setup)),
        }
    }
}

/// Where a leg's data begins: before it is the map.
const DATA_AT: u64 = 64 << 10;
