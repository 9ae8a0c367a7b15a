//! The end of a FUSE mount whose server was killed while its own threads wait for it.
//!
//! The kernel ends the connection when its last descriptor is closed, and a process's descriptors
//! are closed when its last thread has ended. A thread that waits for an answer of the mount, or in
//! a file system over it, is in uninterruptible sleep: killed too, it ends only once it has the
//! answer, which nobody gives any more. Then the process never ends, and all who look at the mount
//! wait with it. A mount of the kernel's own simply stays, with the devices under it.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use crate::Folder;

/// Ends what is mounted at its first argument when the parent is killed, and only itself once it
/// reads a line. A killed parent's descriptors may be closed before its signal is sent (exit_files
/// and exit_notify in the kernel's do_exit), so the end of the input tells of its death as well.
/// The signal may come several times. MNT_FORCE ends a FUSE connection (umount2(2)), also one that
/// is in use. A loop device over a file of the mount is detached before the mount is
/// gone and the file has no path.
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
trap 'trap "" USR1; end "$1" > /dev/null; exit' USR1
echo ready
read -r told || kill -USR1 $$
"#;

/// Kills the group of processes of the first line that it reads, in the same way.
const KILL_GROUP: &str = r#"
trap 'kill -KILL "-$group"; exit' USR1
echo ready
read -r group
read -r told || kill -USR1 $$
"#;

/// Kills a group of processes if this process is killed: what it serves them is gone then, and they
/// would go on in the folder below. It ends when dropped.
#[derive(Debug)]
pub struct GroupGuard {
    guard: Option<Guard>,
}

impl GroupGuard {
    /// Of a group that is to be started. Where no process can be started for that there is none.
    pub fn start() -> GroupGuard {
        GroupGuard { guard: Guard::of(KILL_GROUP, "").ok() }
    }

    /// The group was started, and has this number.
    pub fn watch(&mut self, group: u32) {
        let input = self.guard.as_mut().and_then(|guard| guard.input.as_mut());
        // OK to ignore: it has ended.
        input.map(|input| writeln!(input, "{group}")).transpose().ok();
    }
}

/// A new folder to mount something on, which is unmounted by force if this process is killed. Where
/// no process can be started for that, and for an ordinary user, it is as any [`Folder`].
#[derive(Debug)]
pub struct MountFolder {
    guard: Option<Guard>,
    // Removed last.
    folder: Folder,
}

impl MountFolder {
    /// In the folder for temporary files.
    ///
    /// # Errors
    /// What the host reports.
    pub fn new() -> io::Result<MountFolder> {
        let folder = Folder::new("steadfast-mount-")?;
        Ok(MountFolder { guard: Guard::of(SCRIPT, folder.path()).ok(), folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What is mounted there stays as long as this process lives.
    pub fn leave(&mut self) {
        std::mem::forget(self.guard.take());
    }
}

/// The process that does it. It ends when the value is dropped.
#[derive(Debug)]
struct Guard {
    input: Option<ChildStdin>,
}

impl Guard {
    /// Watches for this process's end.
    fn of(script: &str, at: impl AsRef<OsStr>) -> io::Result<Guard> {
        let mut command = Command::new("setpriv");
        // A signal that nobody sends otherwise. What was ignored before, as under nohup(1), a shell
        // cannot trap.
        command.args(["--pdeathsig", "USR1", "--", "sh", "-c", script, "sh"]).arg(at);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Ctrl-C is not meant for it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let (started, spawned) = std::sync::mpsc::channel();
        // PR_SET_PDEATHSIG: its parent is the thread that starts it, which therefore stays.
        thread::Builder::new().name("mount-guard".into()).spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                // OK to ignore, as below: who has started it waits.
                Err(e) => return drop(started.send(Err(e))),
            };
            // A parent that has died before it was ready would not be noticed.
            let is_ready = wait_until_ready(&mut child);
            let _ = started.send(is_ready.map(|()| child.stdin.take()));
            let _ = child.wait();
        })?;
        let input = spawned.recv().map_err(io::Error::other)??;
        Ok(Guard { input })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            // OK to ignore: it has ended.
            let _ = input.write_all(b"end\n");
        }
    }
}

/// Waits for the first line that it prints, or its end.
fn wait_until_ready(child: &mut Child) -> io::Result<()> {
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    if line.is_empty() { Err(io::Error::other("it has ended")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::has_mounts;
    use crate::program::run;

    #[test]
    #[allow(clippy::print_stdout, reason = "a test that did not run says so")]
    fn a_parent_whose_descriptors_are_closed_first_is_noticed() {
        for is_told in [false, true] {
            let mut folder = MountFolder::new().unwrap();
            let at = folder.path().to_owned();
            let tmpfs: [&std::ffi::OsStr; 4] =
                ["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), at.as_ref()];
            if let Err(e) = run("mount", &tmpfs) {
                return println!("SKIPPED: mounting needs root: {e}");
            }
            let mut guard = folder.guard.take().unwrap();
            if !is_told {
                drop(guard.input.take());
            }
            drop(guard);
            let gone = crate::retry(|| !has_mounts(&at));
            if !gone {
                run("umount", &[&at]).unwrap();
            }
            assert_eq!(gone, !is_told);
        }
    }
}
