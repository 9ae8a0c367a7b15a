//! Which exit status an error has.

use steadfast_devices::filter::NamespaceError;
use steadfast_devices::source::OpenError;
use steadfast_volume::VolumeError;

use crate::outcome::{Unsupported, Usage};
use crate::output;

/// The exit status for an error.
pub fn status_of(e: &anyhow::Error) -> u8 {
    if e.chain().any(is_unsupported) {
        3
    } else if e.chain().any(is_misuse) {
        2
    } else {
        1
    }
}

/// Whether an error says that what was asked for, or what the image uses, is not implemented:
/// nothing is known to be wrong.
fn is_unsupported(e: &(dyn std::error::Error + 'static)) -> bool {
    use steadfast_ext4::Ext4Error;
    use steadfast_journal::JournalError;
    use steadfast_vfs::FsError;
    let by_journal = |e: &JournalError| matches!(e, JournalError::Unsupported { .. });
    let by_fs = |e: &FsError| matches!(e, FsError::Unsupported { .. });
    let by_volume =
        |e: &VolumeError| matches!(e, VolumeError::Newer { .. } | VolumeError::Features { .. });
    e.is::<Unsupported>()
        || matches!(e.downcast_ref(), Some(NamespaceError::Unsupported { .. }))
        || e.downcast_ref().is_some_and(by_volume)
        || e.downcast_ref().is_some_and(by_fs)
        || match e.downcast_ref::<Ext4Error>() {
            Some(Ext4Error::Unsupported { .. }) => true,
            Some(Ext4Error::Journal(e)) => by_journal(e),
            Some(Ext4Error::Fs(e)) => by_fs(e),
            _ => false,
        }
}

/// Whether an error is the caller's: a request that cannot be met, which changed nothing.
fn is_misuse(e: &(dyn std::error::Error + 'static)) -> bool {
    use steadfast_ext4::Ext4Error;
    use steadfast_journal::JournalError;
    let by_volume = |e: &VolumeError| matches!(e, VolumeError::Refused(_));
    let by_namespace = |e: &NamespaceError| {
        matches!(e, NamespaceError::None { .. } | NamespaceError::Refused { .. })
    };
    e.is::<Usage>()
        || output::is_unwritten(e)
        || e.downcast_ref().is_some_and(by_namespace)
        || matches!(e.downcast_ref(), Some(steadfast::Error::Refused { .. }))
        || e.downcast_ref().is_some_and(by_volume)
        || e.downcast_ref().is_some_and(is_wrong_file)
        || matches!(
            e.downcast_ref::<Ext4Error>(),
            Some(
                Ext4Error::NoFileSystem { .. }
                    | Ext4Error::Refused { .. }
                    | Ext4Error::Journal(JournalError::Refused { .. })
            )
        )
}

/// Whether what was named cannot be opened because of what it is, or of who asks; not because a
/// disk or the machine failed.
fn is_wrong_file(e: &OpenError) -> bool {
    use rustix::io::Errno;
    let OpenError::System { source, .. } = e else { return true };
    let failed = [Errno::IO, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::DQUOT];
    !Errno::from_io_error(source).is_some_and(|e| failed.contains(&e))
}
