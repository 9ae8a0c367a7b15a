//! What to do next, after an error.

use steadfast_devices::source::OpenError;
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

/// What to do next after an error of a journal.
pub fn of_journal(e: &Ext4Error) -> Option<&'static str> {
    matches!(e, Ext4Error::Journal(JournalError::Corrupt { .. })).then_some(JOURNAL)
}

/// The same after any error of the file system. Where there is none nothing is damaged.
fn of_error(e: &Ext4Error) -> Option<&'static str> {
    match e {
        Ext4Error::Corrupt { .. } | Ext4Error::Fs(FsError::Corrupt { .. }) => Some(DAMAGE),
        e => of_journal(e),
    }
}

/// Whether a journal's device was given to a file system that has none.
pub fn is_journal_too_much(e: &Ext4Error) -> bool {
    matches!(e, Ext4Error::Refused { what } if what.contains("do not give a journal device"))
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
        let has_way = reads && refused(e) && !is_journal_too_much(e);
        of_error(e).or(has_way.then_some(REFUSED))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(what: &str) -> Ext4Error {
        Ext4Error::Refused { what: what.into() }
    }

    #[test]
    fn a_hint_is_given_where_it_helps() {
        let of = |e: Ext4Error, reads| of(&anyhow::Error::from(e).context("disk.img"), reads);
        assert_eq!(of(Ext4Error::NoFileSystem { found: "it holds text".into() }, true), None);
        assert_eq!(of(Ext4Error::corrupt("a bad checksum", "inode 12"), true).unwrap(), DAMAGE);
        let much = "the file system has no journal: do not give a journal device";
        assert_eq!(of(refused(much), true), None);
        assert_eq!(of(refused("its journal is missing"), true).unwrap(), REFUSED);
        assert_eq!(of(refused("its journal is missing"), false), None);
    }
}
