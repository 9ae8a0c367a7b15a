//! The bytes that the kernel and a file system's daemon exchange (`include/uapi/linux/fuse.h`).
//!
//! Numbers are in the machine's own byte order. Structures have the sizes that they have had since
//! version 7.23 (Linux 3.15).

mod arguments;
mod attributes;
mod header;
mod init;
mod listing;
mod operation;
mod replies;

pub use self::arguments::ArgumentError;
pub(crate) use self::arguments::Arguments;
pub use self::attributes::{EntryOut, FileAttr, SetAttr, SetTime};
pub use self::header::InHeader;
pub(crate) use self::header::{IN_HEADER, OUT_HEADER, OutHeader};
pub use self::init::{Capabilities, Offer, Wishes};
pub(crate) use self::init::{InitIn, InitOut, VERSION};
pub use self::listing::Listing;
pub use self::operation::{ForgetCount, IoctlFlags, OpenReply, Operation, WriteFlags, opcode};
pub(crate) use self::replies::{
    AttrOut, CopyFileRangeOut, CreateOut, EpochOut, InvalEntryOut, InvalInodeOut, IoctlOut,
    LseekOut, OpenOut, StatxOut, WriteOut, XattrOut,
};
pub use self::replies::{StatfsOut, StatxTimes};
