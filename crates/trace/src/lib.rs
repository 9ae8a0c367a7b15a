//! Traces of the file-system calls of programs.
//!
//! * [`record`] notes the calls that pass through to a file system of this machine.
//! * [`order`] finds which calls a call waited for; [`format`](mod@format) is what a trace says,
//!   written by [`TraceWriter`] and read by [`TraceReader`], in bounded memory.
//! * [`import`] makes a trace of what other programs have written; [`fio_log`] are the lines of
//!   fio's logs.
//! * [`replay`] makes the calls again, on any file system, in real or in virtual time.
//!
//! Contents are not kept. What a replay writes says which write it is of ([`replay::content`]).

mod error;
pub mod fio_log;
pub mod format;
pub mod import;
pub mod order;
mod reader;
pub mod record;
pub mod replay;
mod writer;

pub use error::{Result, TraceError};
pub use reader::TraceReader;
pub use writer::TraceWriter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
