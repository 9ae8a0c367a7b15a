//! The stack host: one process that keeps devices and volumes assembled.
//!
//! A [`Host`] opens what a [`Config`] names, assembles the volumes, remembers what commands change,
//! and has everything again after a restart: RAM disks blank, and as legs of mirrors refilled by
//! themselves. [`Tree`] shows devices and volumes as files, [`Server`] answers on a socket.
//!
//! [`protocol`] is what is spoken there: a line of JSON each way, in the same envelope as a mount's
//! control socket. [`client`] speaks it.

pub mod client;
pub mod config;
pub mod door;
mod endpoint;
mod host;
pub mod metrics;
pub mod protocol;
pub mod record;
mod server;
mod tree;

pub use config::Config;
pub use endpoint::Endpoint;
pub use host::kernel::detach_dead;
pub use host::mounts::{Mounted, Mounter, ToMount};
pub use host::{Host, Options};
pub use server::Server;
pub use tree::Tree;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
