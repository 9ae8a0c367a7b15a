//! Extended attributes, and what else changes with them.

use steadfast_vfs::{FsError, Ino, Result, SetXattr};

use super::caller::Caller;
use super::{Bridge, privileges};

/// Attributes that only the administrator sees begin so.
const TRUSTED: &[u8] = b"trusted.";

impl Bridge {
    /// Sets an attribute; `flags` as of setxattr(2).
    pub(super) fn set_attribute(
        &self,
        ino: Ino,
        key: &[u8],
        value: &[u8],
        flags: i32,
        caller: Caller,
    ) -> Result<()> {
        let how = match flags {
            0 => SetXattr::Any,
            1 => SetXattr::Create,
            2 => SetXattr::Replace,
            _ => return Err(FsError::Invalid { what: "flags of setxattr" }),
        };
        self.fs.setxattr(ino, key, value, how)?;
        if key == privileges::CAPABILITY {
            self.note_capabilities(ino);
        }
        if key == privileges::ACCESS_LIST {
            self.after_access_list(ino, caller)?;
        }
        Ok(())
    }

    /// The names of an inode's attributes that the caller may see, each with a zero behind it.
    pub(super) fn attribute_names(
        &self,
        ino: Ino,
        caller: impl FnOnce() -> Caller,
    ) -> Result<Vec<u8>> {
        let mut names = self.fs.listxattr(ino)?;
        let is_trusted = |name: &Vec<u8>| name.starts_with(TRUSTED);
        if names.iter().any(is_trusted) && !caller().sees_trusted() {
            names.retain(|name| !is_trusted(name));
        }
        Ok(names.iter().flat_map(|n| n.iter().copied().chain([0])).collect())
    }
}
