//! Tar archives as streams: members with all that a file system keeps of a file.
//!
//! What is read: ustar and older headers, GNU's long names and numbers, pax records (POSIX.1-2001)
//! with attributes (`SCHILY.xattr.`) and access control lists (`SCHILY.acl.`), sparse files in
//! GNU's old form and in the pax forms 0.0, 0.1 and 1.0. What is written: ustar headers with pax
//! records where they are needed, sparse files in form 1.0.
//!
//! # Invariants
//!
//! 1. An archive may be a stranger's. What a header claims allocates nothing: records and names
//!    are read up to a limit ([`RECORDS_MAX`]), contents in pieces of the caller's size.
//! 2. What is wrong with one member alone is said with it ([`Member::refused`]), and its contents
//!    are skipped. What makes the next header's place unknown ends the archive.
//! 3. What is written depends on what is given only: no clock, no name of this machine.
//!
//! # Why not the crate `tar`
//!
//! It (0.4) ends a pax record at its first newline, so that a binary attribute that holds one is
//! refused; knows nothing of pax sparse files; and reads long names and records into memory
//! whatever their size.
//!
//! Sources: POSIX.1-2024, pax; the GNU tar manual, "Basic Tar Format" and "Storing Sparse Files".

#![allow(clippy::single_range_in_vec_init, reason = "a file may have one piece")]

mod acl;
mod header;
mod member;
mod read;
mod records;
mod sparse;
mod write;

pub use acl::{ACCESS_ACL, DEFAULT_ACL, map_ids};
pub use member::{Member, MemberKind};
pub use read::Reader;
pub use write::Writer;

/// Bytes of the records of one member, or of one long name, at the most.
pub const RECORDS_MAX: u64 = 4 << 20;

/// Why an archive cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// Reading or writing it failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It ends within a member.
    #[error("the archive is cut off: it ends at byte {at}, within {within}")]
    CutOff {
        /// Its length.
        at: u64,
        /// Of what the rest is missing.
        within: String,
    },
    /// It is compressed.
    #[error("this is compressed: unpack it on the way, as in `{with} FILE | ...` with - as FILE")]
    Compressed {
        /// The program that unpacks it.
        with: &'static str,
    },
    /// It is no archive, or damaged so that the rest cannot be found.
    #[error("byte {at} of the archive: {what}")]
    Damaged {
        /// Where.
        at: u64,
        /// What is wrong.
        what: String,
    },
}

/// Result of reading or writing an archive.
pub type Result<T> = std::result::Result<T, TarError>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
