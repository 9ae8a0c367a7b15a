//! What was made, as mke2fs prints it.

use uuid::Uuid;

use crate::plan::Plan;

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MkfsReport {
    /// The device's name.
    pub device: String,
    /// Bytes a block.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks reserved for the super-user.
    pub reserved_blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Inodes in all.
    pub inodes: u32,
    /// Block groups.
    pub groups: u32,
    /// Identity.
    pub uuid: Uuid,
    /// Label.
    pub label: String,
    /// Features by name, as dumpe2fs prints them.
    pub features: Vec<String>,
    /// Blocks that hold backups of the superblock.
    pub backups: Vec<u64>,
    /// Blocks of the internal journal.
    pub journal_blocks: Option<u64>,
    /// Identity of the external journal.
    pub external_journal: Option<Uuid>,
    /// Bytes written, without the journal's.
    pub bytes_written: u64,
}

impl MkfsReport {
    pub(super) fn of(plan: &Plan, device: &str, bytes_written: u64) -> MkfsReport {
        let (sb, layout) = (&plan.sb, &plan.layout);
        let journal: u64 = plan.journal.iter().map(|(_, len)| len).sum();
        MkfsReport {
            device: device.into(),
            block_size: layout.block_size,
            blocks: layout.blocks_count,
            reserved_blocks: sb.reserved_blocks(),
            free_blocks: sb.free_blocks(),
            inodes: layout.inodes_count,
            groups: layout.groups,
            uuid: Uuid::from_bytes(sb.uuid),
            label: sb.label(),
            features: layout.features.names(),
            backups: layout.backup_groups().map(|g| layout.group_start(g)).collect(),
            journal_blocks: (journal > 0).then_some(journal),
            external_journal: sb.has_external_journal().then(|| Uuid::from_bytes(sb.journal_uuid)),
            bytes_written,
        }
    }
}
