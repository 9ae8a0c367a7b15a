//! What to do next, after an error.

use steadfast_devices::source::{OpenError, PmemError};
use steadfast_ext4::Ext4Error;
use steadfast_journal::JournalError;
use steadfast_vfs::FsError;

use crate::mount;

const JOURNAL: &str = "\
hint: nothing was written. To read what is there without the journal: ls, cat,
  get, extents and check with --no-replay, or mount with -o ro,noload. To go
  on: e2fsck -fy replays what comes before the damage and drops the rest, as
  the kernel's mount does, then repairs what that leaves; `steadfast journal
  detach --discard-unreplayed` drops all of it";

/// For commands that only read.
const REFUSED: &str = "\
hint: --no-replay reads the file system as it is without its journal";

const DAMAGE: &str = "\
hint: `steadfast check` lists what is damaged and e2fsck -f repairs it";

/// What to do next after an error of the file system.
pub fn of_error(e: &Ext4Error) -> Option<&'static str> {
    match e {
        Ext4Error::Journal(JournalError::Corrupt { .. }) => Some(JOURNAL),
        Ext4Error::Corrupt { .. } | Ext4Error::Fs(FsError::Corrupt { .. }) => Some(DAMAGE),
        _ => None,
    }
}

/// The same of the first such error in a chain, after a command that `reads` and changes nothing.
pub fn of(e: &anyhow::Error, reads: bool) -> Option<String> {
    let keeper = e.chain().find_map(|e| match busy(e) {
        Some(OpenError::Busy { process, .. }) => *process,
        _ => None,
    });
    match keeper.and_then(mount::keeper::of) {
        Some(place) => Some(format!("hint: {place}")),
        None => of_file_system(e, reads).map(ToOwned::to_owned),
    }
}

/// What opening has failed with, by itself or inside an error that shows it as its own.
fn busy<'e>(e: &'e (dyn std::error::Error + 'static)) -> Option<&'e OpenError> {
    if let Some(PmemError::Open(e)) = e.downcast_ref() {
        return Some(e);
    }
    if let Some(steadfast::Error::Open(e)) = e.downcast_ref() {
        return Some(e);
    }
    e.downcast_ref()
}

fn of_file_system(e: &anyhow::Error, reads: bool) -> Option<&'static str> {
    let refused = |e: &Ext4Error| {
        matches!(e, Ext4Error::Refused { .. } | Ext4Error::Journal(JournalError::Refused { .. }))
    };
    e.chain().find_map(|e| {
        if let Some(FsError::Corrupt { .. }) = e.downcast_ref() {
            return Some(DAMAGE);
        }
        if let Some(JournalError::Corrupt { .. }) = e.downcast_ref() {
            return Some(JOURNAL);
        }
        let e = e.downcast_ref()?;
        of_error(e).or((reads && refused(e)).then_some(REFUSED))
    })
}
