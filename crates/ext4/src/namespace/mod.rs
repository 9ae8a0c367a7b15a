//! Operations on names: create, link, unlink, rename and the others.
//!
//! Each is one [`Txn`] and so one journal update: after a crash it has happened whole or not at
//! all, and an operation that fails has changed nothing. The rules, the error numbers and the
//! times that change are those of the kernel (fs/namei.c, fs/ext4/namei.c). Permissions are not
//! looked at here; they are the front end's, as in the kernel.
//!
//! An inode that is unlinked for the last time becomes an orphan in the same update. It is handed
//! back to the caller, who deletes it ([`Ext4`](crate::Ext4)) once nobody has it open; after a
//! crash, the next mount does.

mod add;
mod entry;
mod links;
mod remove;
mod rename;
mod salvage;

pub use add::{create, link, mkdir, mknod, symlink, tmpfile};
pub use entry::{lookup, readdir, readlink};
pub(crate) use links::{add_subdirectory, remove_subdirectory};
pub use remove::rmdir;
pub(crate) use remove::unlink;
pub use rename::rename;
pub use salvage::readdir_block;
