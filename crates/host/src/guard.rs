//! The end of a FUSE mount whose server was killed while its own threads wait for it.
//!
//! The kernel ends the connection when its last descriptor is closed, and a process's descriptors
//! are closed when its last thread has ended. A thread that waits for an answer of the mount, or in
//! a file system over it, is in uninterruptible sleep: killed too, it ends only once it has the
//! answer, which nobody gives any more. Then the process never ends, and all who look at the mount
//! wait with it.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

/// Ends what is mounted at its first argument when the parent is killed, and itself at the end of
/// its input. MNT_FORCE ends a FUSE connection (umount2(2)), also one that is in use. A loop device
/// over a file of the mount is detached before the mount is gone and the file has no path.
const SCRIPT: &str = r#"
end() {
    umount --force --no-canonicalize -- "$1"
    for loop in /sys/block/loop*/loop; do
        read -r file < "$loop/backing_file"
        case $file in
            "$1"/*) losetup --detach "/dev/$(basename "${loop%/loop}")" ;;
        esac
    done
    umount --lazy --no-canonicalize -- "$1"
    rmdir -- "$1" && rm -f -- "$1.owner"
}
trap 'end "$1"; exit' HUP
read -r end
"#;

/// A process that forces the unmount of a FUSE mount if this one is killed. It ends when the value
/// is dropped. Needs root.
#[derive(Debug)]
pub struct Guard {
    /// Closed, it ends.
    _input: ChildStdin,
}

impl Guard {
    /// Watches for this process's end. `at` is absolute.
    ///
    /// # Errors
    /// No process can be started.
    pub fn of(at: &Path) -> std::io::Result<Guard> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "HUP", "--", "sh", "-c", SCRIPT, "sh"]).arg(at);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is not meant for it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let (started, spawned) = std::sync::mpsc::channel();
        // PR_SET_PDEATHSIG: its parent is the thread that starts it, which therefore stays.
        thread::Builder::new().name("mount-guard".into()).spawn(move || {
            let mut child: Option<Child> = None;
            let input = command.spawn().map(|mut new| {
                let input = new.stdin.take();
                child = Some(new);
                input
            });
            // OK to ignore: who has started it waits.
            let _ = started.send(input);
            if let Some(mut child) = child {
                let _ = child.wait();
            }
        })?;
        let input = spawned.recv().map_err(std::io::Error::other)??;
        // OK to expect: it was asked for.
        Ok(Guard { _input: input.expect("a pipe") })
    }
}
