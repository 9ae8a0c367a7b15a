//! What is in memory of a mounted file system, part by part: each has its own state and, where it
//! needs one, its own lock.
//!
//! Nothing here knows a transaction. `Parts` of [`meta`](crate::meta) owns the parts, and what
//! changes them on disk is in the modules above.

mod access;
mod allocator;
mod clock;
mod deletion;
mod edit;
mod extent_nodes;
mod fast;
mod fetches;
mod fresh;
mod handles;
mod holds;
mod home;
mod inode;
mod inode_cache;
mod mapping;
mod names;
mod orphans;
mod points;
mod protection;
mod quotas;
mod recovery;
mod space;
mod status;
mod timer;
mod transact;
mod trouble;
mod windows;
mod xattr_blocks;

pub(crate) use access::AccessRule;
pub(crate) use allocator::Allocator;
pub use clock::Clock;
pub(crate) use clock::Stamps;
pub(crate) use deletion::Deletion;
pub(crate) use edit::{InodeEdit, Life};
pub(crate) use extent_nodes::NodeCache;
pub(crate) use fast::{NameChange, NameRecord, OperationChanges, Pending, Track, is_eligible};
pub(crate) use fetches::{Fetch, Fetches};
pub(crate) use fresh::Fresh;
pub(crate) use handles::{Handles, OpenFile};
pub(crate) use holds::Holds;
pub(crate) use home::HomeMark;
pub use inode::Inode;
pub(crate) use inode::InodeState;
pub(crate) use inode_cache::InodeCache;
pub(crate) use mapping::{ExtentCache, MapChange};
pub(crate) use names::{Change as NameEdit, NameCache};
pub(crate) use orphans::{OrphanEdit, OrphanFile, OrphanLocation, OrphanSet, Orphans};
pub use points::{LastPoint, RolledBack, SincePoint};
pub(crate) use protection::Protection;
pub(crate) use quotas::{Id as QuotaId, Quotas};
pub use recovery::MountRecovery;
pub(crate) use space::{AllocState, Space, SpaceEdit};
pub use status::Status;
pub(crate) use transact::Transact;
pub use trouble::{UnwrittenPart, WriteError};
pub(crate) use xattr_blocks::{Notes, XattrBlockCache};
