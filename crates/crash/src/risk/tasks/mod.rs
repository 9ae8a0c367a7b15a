//! The programs of the workload.

mod config;
mod log;
mod mail;
mod table;

pub(super) use config::Config;
pub(super) use log::Log;
pub(super) use mail::Mail;
pub(super) use table::Table;

/// Every so many records a program that syncs its records does it.
const RECORDS_A_SYNC: u64 = 8;
