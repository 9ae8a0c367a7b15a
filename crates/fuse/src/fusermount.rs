//! Mounting as an ordinary user: fusermount3(1), which has the right to, mounts and hands over the
//! connection to the kernel through a socket.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

use crate::options::{KernelTimes, Options};

/// Where fusermount3 finds the number of its end of the socket.
const SOCKET: &str = "_FUSE_COMMFD";
/// How long it may take: it looks at the mount point, which may lie on anybody's file system.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

/// The first option that fusermount3 has for root alone.
pub(crate) fn for_root(options: &Options) -> Option<&'static str> {
    [(options.dev, "dev"), (options.suid, "suid"), (options.no_symlinks, "nosymfollow")]
        .into_iter()
        .find_map(|(is_asked, word)| is_asked.then_some(word))
}

/// Mounts at `mountpoint`; the connection.
///
/// # Errors
/// What fusermount3 says; fusermount3 is not there.
pub(crate) fn mount(mountpoint: &Path, options: &Options) -> io::Result<OwnedFd> {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // It is to be inherited. What another thread starts this very moment inherits it too; no harm,
    // it is closed there with the program's end.
    fcntl_setfd(&theirs, FdFlags::empty())?;
    let mut fusermount = Command::new("fusermount3");
    fusermount.args(["-o", &words(options), "--"]).arg(mountpoint);
    let child = start(fusermount.env(SOCKET, theirs.as_raw_fd().to_string()))?;
    drop(theirs);
    // What it has sent stays. Not before its end: a program that another thread has started may
    // have inherited the other end, which is open as long as that runs.
    let output = ended(child, LIMIT)?;
    match receive(&ours)? {
        Some(connection) if output.status.success() => Ok(connection),
        _ => Err(io::Error::other(explained(&String::from_utf8_lossy(&output.stderr)))),
    }
}

/// Unmounts; what it said.
///
/// # Errors
/// It cannot be run, or does not end.
pub(crate) fn unmount(options: &[&str], mountpoint: &Path) -> io::Result<Output> {
    let mut fusermount = Command::new("fusermount3");
    ended(start(fusermount.args(options).arg("--").arg(mountpoint))?, LIMIT)
}

fn start(fusermount: &mut Command) -> io::Result<Child> {
    fusermount.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C is for us: between its mount and its answer it would leave a dead one.
    fusermount.process_group(0).spawn().map_err(|e| {
        let why = format!("fusermount3 cannot be run: {e}; install fuse3, or mount as root");
        io::Error::new(e.kind(), why)
    })
}

/// Waits for its end; it is killed after `limit`.
fn ended(mut child: Child, limit: Duration) -> io::Result<Output> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            let why = format!("fusermount3 has not ended within {limit:?}, and was killed");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        std::thread::sleep(PAUSE);
    }
    child.wait_with_output()
}

/// The options as fusermount3 takes them.
fn words(options: &Options) -> String {
    let source = options.source.replace(['\\', ','], "_");
    let mut words = format!("fsname={source},subtype=steadfast,nodev,nosuid");
    for (is_asked, word) in [
        (!options.fake_root, ",default_permissions"),
        (options.read_only, ",ro"),
        (options.access_times == KernelTimes::Never, ",noatime"),
        (options.no_exec, ",noexec"),
        (options.allow_other, ",allow_other"),
    ] {
        if is_asked {
            words.push_str(word);
        }
    }
    words
}

/// The connection; none if it was not sent.
fn receive(socket: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let (mut byte, mut space) = ([0], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        let mut bytes = [IoSliceMut::new(&mut byte)];
        match recvmsg(
            socket.as_fd(),
            &mut bytes,
            &mut control,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
        ) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
    let connection = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(connection)
}

/// What fusermount3 said, with what to do about it.
fn explained(said: &str) -> String {
    let said = said.trim();
    let said = said.strip_prefix("fusermount3: ").unwrap_or(said);
    if said.contains("user_allow_other") {
        format!("{said}: mount without allow_other, or have root allow it there")
    } else if said.contains("/dev/fuse: Permission denied") {
        format!("{said}: have root allow it to all users (chmod 666 /dev/fuse)")
    } else if said.contains("could not determine username") {
        let user = rustix::process::geteuid().as_raw();
        format!("{said}: user {user} needs a line in /etc/passwd (useradd; in a container, too)")
    } else if said.is_empty() {
        "fusermount3 did not say why: it must belong to root and be set-user-id".to_owned()
    } else {
        said.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_its_words() {
        let options = Options {
            source: "/a,b\\c".into(),
            read_only: true,
            allow_other: true,
            ..Options::default()
        };
        let expected = "fsname=/a_b_c,subtype=steadfast,nodev,nosuid,default_permissions,ro,\
                        allow_other";
        assert_eq!(words(&options), expected);
    }

    #[test]
    fn what_only_root_may_ask_for() {
        assert_eq!(for_root(&Options::default()), None);
        assert_eq!(for_root(&Options { suid: true, ..Options::default() }), Some("suid"));
        assert_eq!(for_root(&Options { dev: true, ..Options::default() }), Some("dev"));
    }

    #[test]
    fn it_says_what_to_do() {
        let said = "fusermount3: option allow_other only allowed if 'user_allow_other' is set in \
                    /etc/fuse.conf\n";
        assert!(
            explained(said).ends_with("mount without allow_other, or have root allow it there")
        );
        assert_eq!(explained("fusermount3: mount failed\n"), "mount failed");
        let said = "fusermount3: failed to open /dev/fuse: Permission denied\n";
        assert!(explained(said).contains("chmod 666"), "{}", explained(said));
        let said = "fusermount3: could not determine username\n";
        assert!(explained(said).contains("/etc/passwd"), "{}", explained(said));
    }

    #[test]
    fn it_is_not_waited_for_without_end() {
        let begun = Instant::now();
        let child = start(Command::new("sleep").arg("600")).unwrap();
        let error = ended(child, Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("was killed"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        let child = start(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap();
        let output = ended(child, LIMIT).unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(3), &b"no\n"[..]));
    }

    /// Also where a program that was started meanwhile holds the other end.
    #[test]
    fn a_socket_without_a_connection_gives_nothing() {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .unwrap();
        assert!(receive(&ours).unwrap().is_none());
        drop(theirs);
        assert!(receive(&ours).unwrap().is_none());
    }
}
