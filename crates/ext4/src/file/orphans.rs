//! Orphans at mount: who they are, and what becomes of them.

use steadfast_ext4_format::Result;

use super::delete::delete;
use super::truncate::cut_to_size;
use crate::mounted::Ext4;

/// Finishes what a crash interrupted: deletes orphans without links, cuts the others to
/// their size.
pub(crate) fn process_orphans(fs: &Ext4) -> Result<()> {
    let all = fs.parts.lock_meta().orphans.all();
    for no in all {
        let inode = fs.parts.look().inode(no)?;
        if inode.state().raw.links() == 0 {
            // After a rollback some may be held.
            if !fs.parts.holds.keep(no) {
                delete(fs, &inode)?;
            }
        } else {
            cut_to_size(fs, &inode)?;
        }
    }
    Ok(())
}
