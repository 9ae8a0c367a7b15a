//! The process that supervisors are forked from, and how it is asked.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sys::signal::{SigHandler, Signal, signal};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use super::{FAILED, Namespaces, SUPERVISE, process};

/// Files that come with a request.
const FILES: usize = 3;
/// Longest request in bytes: more than a command line may have.
const REQUEST_MAX: usize = 192 << 10;

/// What is to be judged how.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JudgeRequest {
    /// For `sh -c`.
    command: Vec<u8>,
    /// Where it runs.
    folder: Vec<u8>,
    /// Variables of its environment, beside those of who has started it all.
    environment: Vec<(Vec<u8>, Vec<u8>)>,
}

impl JudgeRequest {
    pub fn new(command: &str, folder: &Path, environment: &[(&str, &Path)]) -> JudgeRequest {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let pair = |(name, path): &(&str, &Path)| (name.as_bytes().to_vec(), bytes(path));
        JudgeRequest {
            command: command.into(),
            folder: bytes(folder),
            environment: environment.iter().map(pair).collect(),
        }
    }

    /// Where the judge runs.
    pub fn folder(&self) -> PathBuf {
        OsString::from_vec(self.folder.clone()).into()
    }

    /// Its shell.
    pub fn shell(&self) -> Command {
        let mut shell = Command::new("sh");
        let pairs = self.environment.iter();
        shell
            .arg("-c")
            .arg(OsStr::from_bytes(&self.command))
            .current_dir(self.folder())
            .envs(pairs.map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
        shell
    }
}

/// A process that forks supervisors. It ends when this is dropped.
pub(super) struct ForkServer {
    socket: Option<OwnedFd>,
    process: Child,
}

impl ForkServer {
    /// Starts it.
    pub fn start(program: &Path, namespaces: Namespaces) -> io::Result<ForkServer> {
        let (unix, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (socket, its) = socketpair(unix, kind, SocketFlags::CLOEXEC, None)?;
        // A signal to the group that we are in is not for it.
        let process = Command::new(program)
            .args([SUPERVISE, namespaces.word()])
            .stdin(its)
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(ForkServer { socket: Some(socket), process })
    }

    /// Has a supervisor forked.
    pub fn fork(&self, request: &JudgeRequest, files: &[OwnedFd; FILES]) -> io::Result<()> {
        let request = postcard::to_allocvec(request).map_err(io::Error::other)?;
        if request.len() > REQUEST_MAX {
            return Err(Errno::TOOBIG.into());
        }
        let files = files.each_ref().map(|file| file.as_fd());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
        let socket = self.socket.as_ref().ok_or(Errno::PIPE)?;
        sendmsg(socket, &[IoSlice::new(&request)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.socket = None;
        // OK to ignore: what it has forked ends with the pipes of who has asked for it.
        let _ = self.process.wait();
    }
}

/// Forks supervisors as the argument after [`SUPERVISE`] says, until nobody can ask for more. For a
/// program that is started by [`Supervisor`](super::Supervisor), as the first thing that it does.
pub fn supervise(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = arguments.collect();
    let namespaces = [Namespaces::Own, Namespaces::Shared].into_iter();
    let wanted = match &words[..] {
        [how] => namespaces.into_iter().find(|namespaces| how == namespaces.word()),
        _ => None,
    };
    let stdin = io::stdin();
    let served = wanted.map(|namespaces| serve(stdin.as_fd(), namespaces));
    match served {
        Some(Ok(())) => ExitCode::SUCCESS,
        // It is not for people.
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}

fn serve(socket: BorrowedFd<'_>, namespaces: Namespaces) -> io::Result<()> {
    // Nobody asks how a supervisor has ended: its report says it, or has no end.
    set_child_signal(SigHandler::SigIgn)?;
    let mut buffer = vec![0; REQUEST_MAX];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut buffer)];
        let length = match recvmsg(socket, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => continue,
            received => received?.bytes,
        };
        if length == 0 {
            return Ok(());
        }
        let sent = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files: Vec<OwnedFd> = sent.flatten().collect();
        let request = postcard::from_bytes(&buffer[..length]).map_err(io::Error::other)?;
        let Ok(files) = <[OwnedFd; FILES]>::try_from(files) else { continue };
        fork(&request, files, namespaces);
    }
}

/// Forks a supervisor, which gets these files.
#[allow(unsafe_code, reason = "to start ourselves anew takes longer than many a judge; see SAFETY")]
fn fork(request: &JudgeRequest, files: [OwnedFd; FILES], namespaces: Namespaces) {
    // SAFETY: this process has no other thread, so that nothing in the child is half done.
    match unsafe { libc::fork() } {
        0 => {
            let done = become_supervisor(files).and_then(|()| match namespaces {
                Namespaces::Own => process::enter(request),
                Namespaces::Shared => process::run(request, false),
            });
            if let Err(e) = &done {
                fail(&io::stdout(), e);
            }
            std::process::exit(i32::from(done.is_err()));
        }
        -1 => {
            let e = io::Error::last_os_error();
            let [_, report, _] = files;
            fail(&File::from(report), &e);
        }
        _ => {}
    }
}

/// Reports what could not be done.
fn fail(mut report: impl Write, e: &io::Error) {
    // OK to ignore: who reads it has gone.
    let _ = write!(report, "{FAILED}{e}");
}

/// Takes the files as its own, in a group of its own.
fn become_supervisor([stdin, stdout, stderr]: [OwnedFd; FILES]) -> io::Result<()> {
    set_child_signal(SigHandler::SigDfl)?;
    rustix::process::setpgid(None, None)?;
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}

#[allow(unsafe_code, reason = "a handler could do anything; see SAFETY")]
fn set_child_signal(how: SigHandler) -> io::Result<()> {
    // SAFETY: it is ignored, or as it is by default: nothing of ours is called.
    unsafe { signal(Signal::SIGCHLD, how) }?;
    Ok(())
}
