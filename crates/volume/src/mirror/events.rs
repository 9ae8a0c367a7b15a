//! Events for the operator, sent to the registered listener.

use std::sync::Arc;

/// Something happened to a mirror that a person should look after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A leg failed a request, and is out of use; other legs have what it had.
    Dropped(LegError),
    /// A leg failed a request, and stays in use.
    Erred(LegError, KeepReason),
    /// A leg holds blocks that are not what was written, or checksums that are damaged.
    WrongData {
        /// The leg, and what is wrong.
        leg_error: LegError,
        /// It was given what is right.
        repaired: bool,
    },
    /// No leg has checksums of a region any more that can be trusted: what is read of it is not
    /// verified until a scrub that repairs, or until it was written.
    ChecksumsLost {
        /// Where in the volume, in bytes.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// A spare took a failed leg's place, and is given everything.
    SpareUsed {
        /// The place.
        slot: usize,
        /// The spare's name.
        name: String,
    },
}

/// Why a leg that failed stays in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    /// It holds what no other durable leg has.
    OnlyCopy,
    /// The same request failed on every durable leg: none of them is better.
    AllFailed,
}

/// A leg that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegError {
    /// Its place.
    pub slot: usize,
    /// The device's name.
    pub name: String,
    /// It does not count as durable: nothing became less safe.
    pub volatile: bool,
    /// The error.
    pub error: String,
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let leg = |t: &LegError| format!("leg {} ({}) failed: {}", t.slot, t.name, t.error);
        match self {
            Event::Dropped(t) if t.volatile => {
                write!(f, "{}; it is out of use, and is not the only copy of anything", leg(t))
            }
            Event::Dropped(t) => write!(
                f,
                "{}; it is out of use, other legs have its data: repair it and take it online, or \
                 replace it",
                leg(t)
            ),
            Event::Erred(t, KeepReason::OnlyCopy) => write!(
                f,
                "{}; it stays in use, because it holds what no other leg has: add a leg and resync \
                 while it can still be read",
                leg(t)
            ),
            Event::Erred(t, KeepReason::AllFailed) => write!(
                f,
                "{}; it stays in use, because no durable leg took the request: repair what they \
                 share and take it online, or add a leg and resync",
                leg(t)
            ),
            Event::WrongData { leg_error, repaired } => {
                let LegError { slot, name, error, .. } = leg_error;
                let outcome = match repaired {
                    true => "repaired",
                    false => "not repaired: run a scrub with --repair",
                };
                write!(f, "leg {slot} ({name}): {error}; {outcome}")
            }
            Event::ChecksumsLost { offset, len } => write!(
                f,
                "the checksums of {len} bytes from byte {offset} of the volume on are damaged on \
                 all legs: what is read there is not verified until a scrub with --repair"
            ),
            Event::SpareUsed { slot, name } => {
                write!(f, "spare {name} is leg {slot} now, and is given what it lacks: add another")
            }
        }
    }
}

/// Listener for events.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;
