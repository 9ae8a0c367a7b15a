//! The group descriptors that a transaction changes.

use std::collections::BTreeMap;

use steadfast_ext4_format::ondisk::{GroupDesc, GroupNo};

/// Group descriptors of a transaction: the changed ones over those of the volume.
#[derive(Default)]
pub(crate) struct GroupEdits {
    pub edited: BTreeMap<GroupNo, GroupEdit>,
}

/// A group that a transaction changes.
pub(crate) struct GroupEdit {
    pub desc: GroupDesc,
    pub blocks_changed: bool,
    pub inodes_changed: bool,
}
