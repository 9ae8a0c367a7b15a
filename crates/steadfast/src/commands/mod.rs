//! One command, or one family of commands, a file.

pub mod calibrate;
pub mod compare;
pub mod crash;
pub mod dd;
pub mod extents;
pub mod fio;
pub mod hdparm;
pub mod image;
mod in_use;
pub mod iostat;
pub mod iozone;
pub mod journal;
pub mod journal_device;
pub mod lab;
pub mod mkfs;
pub mod pages;
pub mod pmem;
pub mod sensitivity;
pub mod serve;
pub mod site;
pub mod stack_file;
pub mod svm;
pub mod sweep;
pub mod top;
pub mod trace;
pub mod tree;
pub mod validate;
pub mod volume;
pub mod whole_file;

use steadfast_vfs::size;

use crate::Usage;

/// The bytes that an option says, if it is given.
fn bytes_of(option: &str, given: Option<&str>) -> Result<Option<u64>, Usage> {
    let parsed = |text| size::parse(text).map_err(|e| Usage(format!("{option} {text}: {e}")));
    given.map(parsed).transpose()
}
