//! The programs of the workload.

mod backup;
mod config;
mod database;
mod download;
mod log;
mod mail;
mod store;
mod table;

pub(super) use backup::Backup;
pub(super) use config::ConfigTask;
pub(super) use database::Database;
pub(super) use download::Download;
pub(super) use log::Log;
pub(super) use mail::Mail;
pub(super) use store::StoreTask;
pub(super) use table::Table;

/// Every so many records a program that syncs its records does it.
const RECORDS_A_SYNC: u64 = 8;
