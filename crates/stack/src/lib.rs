//! The stack host: one process that keeps devices and volumes assembled.
//!
//! A [`Host`] opens the devices of a [`HostConfig`], assembles the volumes, and stores changes by
//! commands. After a restart it restores everything: RAM disks are blank, and RAM legs of mirrors
//! are resynced automatically. [`Tree`] shows devices and volumes as files, [`Server`] serves a
//! socket.
//!
//! [`protocol`] is the protocol of the socket: a line of JSON each way, in the same format as a
//! mount's control socket. [`client`] is its client.

pub mod client;
pub mod config;
pub mod connection;
mod endpoint;
mod host;
pub mod listener;
pub mod metrics;
pub mod protocol;
pub mod record;
mod server;
mod tree;

pub use config::HostConfig;
pub use endpoint::Endpoint;
pub use host::kernel::detach_dead;
pub use host::mounts::{MountedFs, Mounter, ToMount};
pub use host::{Host, Options};
pub use server::Server;
pub use tree::Tree;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
