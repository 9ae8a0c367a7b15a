//! Multiple-mount protection makes a mount wait: it prints what it waits for.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::Incompat;
use steadfast_ext4_format::superblock;

use crate::terminal;

/// What takes longer is printed.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// Does what mounts the file system on a device called `name`; says what it waits for where it
/// takes long.
pub fn reporting_wait<T>(
    device: &Arc<dyn BlockDevice>,
    name: &str,
    read_only: bool,
    mount: impl FnOnce() -> T,
) -> T {
    // What cannot be read the mount says.
    let features = superblock::find(&**device).map(|found| found.superblock.features());
    let waits = !read_only && features.is_ok_and(|f| f.incompat.contains(Incompat::MMP));
    if !waits {
        return mount();
    }
    let (ended, has_ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if has_ended.recv_timeout(REPORT_AFTER) == Err(RecvTimeoutError::Timeout) {
                terminal::note(&format!(
                    "{name}: waiting to see whether another host has the file system mounted \
                     (multiple-mount protection): some 10 to 20 s"
                ));
            }
        });
        let mounted = mount();
        drop(ended);
        mounted
    })
}
