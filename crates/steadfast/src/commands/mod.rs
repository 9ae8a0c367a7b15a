//! One command, or one family of commands, a file.

pub mod crash;
pub mod dd;
pub mod extents;
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
pub mod top;
pub mod tree;
pub mod volume;
pub mod whole_file;
