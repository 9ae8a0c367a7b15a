//! The FUSE protocol of the Linux kernel, as a daemon speaks it: requests in, answers out.
//!
//! [`Session::connect`] shakes hands over a connection (an open /dev/fuse that is mounted
//! somewhere), [`Session::serve`] hands each request to a [`Handler`] until the mount is gone.
//! Requests come over /dev/fuse, or over io_uring where the kernel offers that ([`Transport`]).
//!
//! # Invariants
//!
//! 1. Each request is answered exactly once: a [`Reply`] that is dropped answers EIO.
//! 2. Bytes of the kernel are not trusted: a request that is too short for what it claims is
//!    answered EINVAL and reaches no handler.
//! 3. `unsafe` is in the ring's two files only (`transport/ring.rs`, `transport/ring_memory.rs`)
//!    and in the one ioctl of `transport/device.rs`.
//!
//! # Where a request is answered
//!
//! Over io_uring each processor has a queue of its own, and a request goes to the queue of the
//! processor that its caller runs on (`fs/fuse/dev_uring.c`). The threads of a queue are bound to
//! its processor: caller and daemon take turns there, and no other processor has to be woken. Each
//! thread has one request at a time. The kernel gives the next one to the thread that was ready
//! last, so that further threads run only where the first ones wait for storage.

mod notifier;
mod protocol;
mod reply;
mod session;
mod transport;

pub use notifier::Notifier;
pub use protocol::{
    ArgumentError, Capabilities, EntryOut, FileAttr, ForgetCount, InHeader, IoctlFlags, Listing,
    Offer, OpenReply, Operation, SetAttr, SetTime, StatfsOut, StatxTimes, Wishes, WriteFlags,
    opcode,
};
pub use reply::{LateReply, ReadSource, Reply};
pub use session::{Access, Config, Handler, Session};
pub use transport::{Transport, TransportChoice};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
