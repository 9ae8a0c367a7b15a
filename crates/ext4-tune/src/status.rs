//! What journal a file system has, and in what state it is.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::mount::{discardable, replayed_blocks};
use steadfast_ext4_format::journal::internal_log;
use steadfast_ext4_format::ondisk::{Compat, StateFlags};
use steadfast_ext4_format::{Ext4Error, Result, refused};
use steadfast_journal::{self as jbd2, Overlay, external};
use uuid::Uuid;

use crate::prepare::{JournalDevice, load, mount_options, needs_recovery};

/// Where a journal is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum JournalLocation {
    /// The file system has none.
    #[default]
    None,
    /// In an inode of the file system.
    Internal {
        /// The inode's number.
        inode: u32,
    },
    /// On a device of its own.
    External {
        /// What the file system says that the device's UUID is.
        uuid: Uuid,
        /// The device number that the file system remembers (`s_journal_dev`); 0: none.
        number: u32,
    },
    /// What was asked about is a journal device.
    Device {
        /// Its UUID.
        uuid: Uuid,
        /// Its label.
        label: String,
    },
}

/// What waits in a log to be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingReplay {
    /// Whole transactions.
    pub transactions: u32,
    /// Blocks of the file system that they change.
    pub blocks: u64,
}

/// A journal's state.
#[derive(Debug, Clone, Default)]
pub struct JournalStatus {
    /// Where it is.
    pub place: JournalLocation,
    /// The file system's UUID; none of a journal device alone.
    pub fs_uuid: Option<Uuid>,
    /// The file system needs what the journal holds.
    pub needs_recovery: bool,
    /// The newest transaction of an external journal that is home in part, which its log must
    /// reach; `None` where nothing is to be replayed, or nobody has noted it.
    pub home_mark: Option<jbd2::Tid>,
    /// The file system has an error recorded.
    pub fs_error: bool,
    /// The journal superblock, as far as it could be read.
    pub superblock: Option<jbd2::JournalSuperblock>,
    /// What waits to be replayed; `None` if the log could not be read.
    pub pending: Option<PendingReplay>,
    /// Why the journal cannot be used, and the way out.
    pub problem: Option<String>,
}

impl JournalStatus {
    /// File systems that use it.
    pub fn users(&self) -> Vec<Uuid> {
        match (&self.place, &self.superblock) {
            (JournalLocation::External { .. } | JournalLocation::Device { .. }, Some(sb)) => {
                sb.users()
            }
            _ => Vec::new(),
        }
    }
}

/// Looks at the journal of the file system on `device`, or at the journal device `device`.
/// Writes nothing.
///
/// # Errors
/// If the file system itself cannot be read. What is wrong with the journal is in the status.
pub fn status(
    device: &Arc<dyn BlockDevice>,
    journal: Option<&JournalDevice>,
) -> Result<JournalStatus> {
    if steadfast_ext4_check::info(device)?.is_journal_device {
        return device_status(device);
    }
    let (sb, layout) = load(device)?;
    let external = sb.has_external_journal();
    let place = if !sb.features().compat.contains(Compat::HAS_JOURNAL) {
        JournalLocation::None
    } else if external {
        let uuid = Uuid::from_bytes(sb.journal_uuid);
        JournalLocation::External { uuid, number: sb.journal_device.get() }
    } else {
        JournalLocation::Internal { inode: sb.journal_inode.get() }
    };
    let mut status = JournalStatus {
        fs_uuid: Some(Uuid::from_bytes(sb.uuid)),
        needs_recovery: needs_recovery(&sb),
        home_mark: sb.home_mark(),
        fs_error: StateFlags::from_bits_retain(sb.state.get()).contains(StateFlags::ERROR),
        place,
        ..JournalStatus::default()
    };
    if status.place == JournalLocation::None {
        if journal.is_some() {
            return refused("the file system has no journal: do not give a journal device");
        }
        return Ok(status);
    }
    let seen = if external {
        journal
            .and_then(|j| external::open_device(Arc::clone(&j.device)).ok())
            .map(|found| found.superblock)
    } else {
        internal_log(device, &sb, &layout).and_then(|log| Ok(log.read_superblock()?)).ok()
    };
    status.superblock = seen;
    match discardable(device, &mount_options(journal)) {
        Ok((report, overlay)) => status.pending = Some(pending(&report, &overlay)),
        Err(e) => status.problem = Some(e.to_string()),
    }
    if status.problem.is_none()
        && let Err(e @ Ext4Error::Refused { .. }) = replayed_blocks(device, &mount_options(journal))
    {
        // It can be read, and is not the one that the file system needs.
        status.problem = Some(e.to_string());
    }
    Ok(status)
}

fn pending(report: &jbd2::RecoveryReport, overlay: &Overlay) -> PendingReplay {
    PendingReplay { transactions: report.transactions, blocks: overlay.len() as u64 }
}

fn device_status(device: &Arc<dyn BlockDevice>) -> Result<JournalStatus> {
    let found = external::open_device(Arc::clone(device))?;
    let (mut waits, mut problem) = (None, None);
    // The file system is not here: numbers of its blocks cannot be held against its size.
    match jbd2::Recovery::read(&found.log, &**device) {
        Ok(found) => waits = Some(pending(&found.report, &found.overlay)),
        Err(jbd2::JournalError::Corrupt { what, .. }) if what.contains("beyond") => {}
        Err(e) => problem = Some(e.to_string()),
    }
    if found.superblock.nr_users() > 1 {
        problem = Some(format!(
            "{} file systems have been attached to it; a journal serves one: detach the others, \
             each with `steadfast journal detach IMAGE --journal JOURNAL`",
            found.superblock.nr_users()
        ));
    }
    Ok(JournalStatus {
        place: JournalLocation::Device { uuid: found.uuid, label: found.label },
        superblock: Some(found.superblock),
        pending: waits,
        problem,
        ..JournalStatus::default()
    })
}
