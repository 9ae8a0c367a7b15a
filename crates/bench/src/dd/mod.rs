//! dd: copies blocks from a source to a sink, converts them on the way, and counts.
//!
//! ```text
//! operands  the command line: key=value words, as GNU dd 9.1 reads them
//! number    sizes and counts with their suffixes
//! words     the words of conv=, iflag=, oflag= and status=
//! ends      what a source and a sink can do; zeros, nothing, random bytes
//! file      a file of a file system as source or sink
//! device    a block device as source or sink
//! place     what a path means on a stack
//! convert   the conversions
//! tables    ASCII and EBCDIC
//! output    gathers what is written into blocks
//! copy      the loop, with dd's messages
//! tally     the counts and dd's last lines
//! errno     error numbers in the system's words; names in quotation marks
//! ```
//!
//! A run goes in real time, or in virtual time if called inside a simulation. Messages are handed
//! to the caller's [`Reporter`]; nothing here prints.

mod convert;
mod copy;
mod device;
mod ends;
mod errno;
mod file;
mod number;
mod operands;
mod output;
pub mod place;
mod tables;
mod tally;
mod words;

pub use copy::{DdFailure, Job, Reporter, run};
pub use device::DeviceEnd;
pub use ends::{Null, Random, Sink, SkipResult, Source, Zeros};
pub use errno::{Charset, Errno, always_quoted};
pub use file::FileSink;
pub use operands::{Operands, WrongOperand, parse};
pub use tally::{Counts, Tally};
pub use words::{Conv, Flags, StatusLevel};
