//! A thread that is held by ptrace(2), from seizing it in its call to letting it go.
//!
//! All of it is for one thread of ours: the kernel knows no other tracer.

use std::fs::{read_to_string, symlink_metadata};
use std::io;

use framehop::UnwindRegsNative;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::NoStack;

/// Threads that are not the first of their process (linux/wait.h), and only our own tracees.
const OF_TRACER: u32 = (libc::__WALL | libc::__WNOTHREAD).cast_unsigned();
/// In the upper byte of a stop: asked for by PTRACE_INTERRUPT, or the whole process is stopped.
const EVENT_STOP: i32 = 128;

/// A thread that has been seized.
pub struct SeizedThread {
    thread: Pid,
    /// What is to be delivered when it goes on.
    signal: i32,
}

impl SeizedThread {
    /// Seizes a thread, which goes on as if it was not.
    pub fn seize(thread: u32) -> Result<SeizedThread, NoStack> {
        let pid = i32::try_from(thread).map(Pid::from_raw).map_err(|_| NoStack::Gone)?;
        match ptrace::seize(pid, ptrace::Options::empty()) {
            Ok(()) => Ok(SeizedThread { thread: pid, signal: 0 }),
            Err(Errno::ESRCH) => Err(NoStack::Gone),
            Err(_) if field(thread, "TracerPid:").is_some_and(|by| by != 0) => Err(NoStack::Traced),
            // A thread of the kernel has no program.
            Err(_) if symlink_metadata(format!("/proc/{thread}/exe")).is_err() => {
                Err(NoStack::Gone)
            }
            Err(_) => Err(NoStack::Refused),
        }
    }

    /// Has it stop when it comes back from its call. OK to ignore an error: it is about to end.
    pub fn interrupt(&self) {
        let _ = ptrace::interrupt(self.thread);
    }

    /// Waits for that; `false`: it has ended.
    pub fn wait(&mut self) -> bool {
        let stops = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let stop = loop {
            match self.look(stops) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(Some(stop)) => break stop,
                // Somebody else has waited for its end.
                Ok(None) | Err(_) => return false,
            }
        };
        if stop.stopped() || stop.trapped() {
            let code = stop.trapping_signal().or_else(|| stop.stopping_signal()).unwrap_or(0);
            // What is no event is a signal, which is not to be lost.
            self.signal = if code >> 8 == EVENT_STOP { 0 } else { code & 0x7f };
            return true;
        }
        let thread = self.thread.as_raw().cast_unsigned();
        let is_child = field(thread, "Tgid:") == Some(thread)
            && field(thread, "PPid:") == Some(std::process::id());
        if !is_child {
            // Its parent hears of it after us. OK to ignore: it is gone in any case.
            let _ = self.look(WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        false
    }

    fn look(
        &self,
        how: WaitIdOptions,
    ) -> rustix::io::Result<Option<rustix::process::WaitIdStatus>> {
        let pid = rustix::process::Pid::from_raw(self.thread.as_raw());
        let Some(pid) = pid else { return Ok(None) };
        waitid(WaitId::Pid(pid), how | WaitIdOptions::from_bits_retain(OF_TRACER))
    }

    /// Where it is, of one that has stopped: the next instruction, and what unwinding begins with.
    pub fn registers(&self) -> Option<(u64, UnwindRegsNative)> {
        let all = ptrace::getregs(self.thread).ok()?;
        #[cfg(target_arch = "x86_64")]
        let (at, registers) = (all.rip, UnwindRegsNative::new(all.rip, all.rsp, all.rbp));
        #[cfg(target_arch = "aarch64")]
        let (at, registers) = (all.pc, UnwindRegsNative::new(all.regs[30], all.sp, all.regs[29]));
        // A thread that works for io_uring has never been anywhere.
        (at != 0).then_some((at, registers))
    }

    /// Lets one go on that has stopped. One that was killed meanwhile is ours until it has ended.
    pub fn let_go(mut self) {
        while !self.detach() && self.wait() {}
    }

    #[allow(unsafe_code, reason = "the safe form knows no real-time signals; see SAFETY")]
    fn detach(&self) -> bool {
        let no_address = std::ptr::null_mut::<libc::c_void>();
        let signal = std::ptr::without_provenance_mut::<libc::c_void>(self.signal as usize);
        let thread = self.thread.as_raw();
        // SAFETY: it takes two numbers, and no memory is read or written by it.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, no_address, signal) == 0 }
    }
}

/// A number in a thread's status.
fn field(thread: u32, name: &str) -> Option<u32> {
    let status = read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// Why this machine may refuse to seize, and what would allow it, in words.
pub fn refusal() -> String {
    let scope: io::Result<String> = read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse::<u32>().ok());
    match scope {
        Some(scope @ 2..) => format!(
            "kernel.yama.ptrace_scope is {scope}: with 1 (sysctl, as root) a program may be looked \
             at by who has started it"
        ),
        _ => "programs of another user, set-id programs and those that say so cannot be looked \
              at; in a container, run it with --cap-add SYS_PTRACE"
            .into(),
    }
}
