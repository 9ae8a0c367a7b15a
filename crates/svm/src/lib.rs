//! What the Solaris Volume Manager's commands understand, and what they print.
//!
//! Pure: a command line becomes a [`Command`], a [`State`] becomes text. Nothing is done here, and
//! nothing is printed. The grammar is that of the manual pages of Solaris 10, section 1M, the forms
//! are those that the commands printed there; docs/svm.md says where ours differ, and why.
//!
//! * [`command`]: one command a module, its usage and its grammar;
//! * [`state`]: what a host has, as far as these commands print it;
//! * [`forms`]: `metastat` whole, `-p` and `-c`, `metaparam`, `metadb`, `metahs -i`, `ramdiskadm`;
//! * [`iostat`]: rates from two readings of counters.

#[macro_use]
pub mod command;
pub mod forms;
mod getopt;
pub mod iostat;
pub mod name;
pub mod state;

pub use command::{Command, Misuse, NAMES, parse};
pub use state::State;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
