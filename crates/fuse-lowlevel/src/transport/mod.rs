//! What carries requests and answers: /dev/fuse, or io_uring.

mod device;
mod processors;
mod readers;
mod ring;
mod ring_answer;
mod ring_memory;

use std::fmt;

pub(crate) use self::device::{Device, receive};
pub(crate) use self::readers::serve as serve_device;
pub(crate) use self::ring::{Rings, serve as serve_rings};

/// What carries requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportChoice {
    /// io_uring where the kernel offers it and it can be had, else /dev/fuse.
    #[default]
    Best,
    /// /dev/fuse.
    Device,
    /// io_uring; else it is an error.
    Ring,
}

/// What carries a session's requests. Shown in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// /dev/fuse; why not io_uring, if that was tried.
    Device {
        /// In a sentence.
        why: Option<String>,
    },
    /// io_uring.
    Ring {
        /// The kernel's queues: one for each processor that there may be.
        queues: usize,
        /// Requests that can be answered at the same time.
        entries: usize,
        /// Bytes of memory that are set aside for them at most.
        buffers: u64,
    },
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Device { why: None } => f.write_str("/dev/fuse"),
            Transport::Device { why: Some(why) } => write!(f, "/dev/fuse; not io_uring: {why}"),
            Transport::Ring { queues, entries, buffers } => {
                let mib = buffers >> 20;
                write!(
                    f,
                    "io_uring, {entries} requests in {queues} queues, buffers up to {mib} MiB"
                )
            }
        }
    }
}
