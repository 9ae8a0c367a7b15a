//! What operations on names share.

use std::sync::Arc;

use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_vfs::{Attr, Ino, Result, TransactMask};

use crate::file::delete_if_unused;
use crate::mounted::{Ext4, key};
use crate::namespace;
use crate::state::Inode;

/// Makes something in a directory by `make`, and gives its attributes.
pub(super) fn make(
    fs: &Ext4,
    dir: Ino,
    what: TransactMask,
    make: impl Fn(InodeNo) -> steadfast_ext4_format::Result<Arc<Inode>>,
) -> Result<Attr> {
    let inode = fs.run_on(&[dir], || make(fs.given(dir)?))?;
    fs.names_changed(&[dir], what)?;
    Ok(fs.attr(&inode))
}

/// The last name of an inode has gone.
pub(super) fn nameless(fs: &Ext4, inode: &Inode) -> Result<()> {
    fs.run(|| delete_if_unused(fs, inode))?;
    fs.parts.holds.relieve();
    Ok(())
}

/// What is renamed over another file is written out first (the kernel's `auto_da_alloc`).
pub(super) fn flush_before_replacing(
    fs: &Ext4,
    from: (Ino, &[u8]),
    to: (Ino, &[u8]),
) -> Result<()> {
    if !fs.options.auto_da_alloc {
        return Ok(());
    }
    let find = |(dir, name)| {
        let dir = fs.given(dir)?;
        fs.parts.with_blocks(|| namespace::lookup(&fs.parts, dir, name))
    };
    // Mostly there is nothing to be replaced: asked first.
    let Ok(_target) = find(to) else { return Ok(()) };
    let Ok(source) = find(from) else { return Ok(()) };
    if source.state().delayed.is_empty() {
        return Ok(());
    }
    fs.pages.flush(key(source.no))
}
