//! The stack host: one process that keeps devices and volumes assembled.
//!
//! [`protocol`] is what is spoken on its socket: a line of JSON each way, in the same envelope as a
//! mount's control socket. [`client`] speaks it.

pub mod client;
pub mod protocol;
