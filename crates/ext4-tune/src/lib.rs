//! Another journal for an existing file system: attach, detach, move, and what there is.
//!
//! # How a cut is survived
//!
//! A file system names its journal in the first sector of its superblock, and that sector is
//! written once (see `ondisk::atomic_write`; on memory in steps, `ondisk::redo`): before, the old
//! journal counts, after, the new one. What else must change with it (the blocks that an internal
//! journal takes or gives back) is put into the *new* journal beforehand, as a transaction that has
//! committed, and the superblock that names the journal says that it is to be replayed. So the
//! first recovery does the rest, ours or the kernel's, and there is no moment at which half of it
//! counts.
//!
//! Two moments are left in which e2fsck has something to tidy, without asking anybody:
//!
//! * A new internal journal's inode must be there before the superblock names it. Until then it
//!   is an inode that is not used but not empty; nobody looks at it.
//! * A file system that gives up an internal journal for none has no other to do it with. It
//!   says that it was not unmounted cleanly until the blocks have been given back. On memory,
//!   where that would tear descriptors, it is the last transaction of that journal (`give_up`).
//!
//! A journal that is given up without having been replayed gets a new identity, if its device is
//! present: if it comes back later, no file system accepts it.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4_mkfs::{Options, make};
//! use steadfast_ext4_tune::{JournalLocation, LossPolicy, detach, status};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! make(&disk, &Options::random(1_700_000_000))?;
//! detach(&disk, None, LossPolicy::Refuse)?;
//! assert_eq!(status(&disk, None)?.place, JournalLocation::None);
//! # Ok::<(), steadfast_ext4_format::Ext4Error>(())
//! ```

mod attach;
mod bootstrap;
mod detach;
mod give_up;
mod named;
mod prepare;
mod status;

pub use attach::{AttachReport, NewJournal, attach, move_to};
pub use detach::{DetachReport, DiscardedLog, LossPolicy, detach};
pub use prepare::JournalDevice;
pub use status::{JournalLocation, JournalStatus, PendingReplay, status};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
