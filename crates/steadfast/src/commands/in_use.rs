//! Files of this machine that somebody has locked: images that are mounted.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use steadfast_setup::path::{PathOptions, open_file};

use crate::setup_error::to_anyhow;

/// Who has locked the file at a path as an image is locked while it is used; `None`: nobody, or it
/// is no regular file. To be asked before such a file is written, cut or removed.
pub fn by_whom(path: &Path) -> Option<anyhow::Error> {
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    // What cannot be read is refused by whoever opens it next.
    let file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK) {
        return None;
    }
    let options = PathOptions { as_it_is: true, ..PathOptions::default() };
    open_file(path, options).err().map(to_anyhow)
}
