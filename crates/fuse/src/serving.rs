//! A mount that a thread of this process serves, and its end.
//!
//! Nothing here waits without an end: the kernel lets go of a mount only when nobody holds it.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{MountError, Result};
use crate::mounted::{FuseMount, Unmounter};

/// How long is waited for who uses a mount, and for the kernel to let go of it.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// How long is waited for the last calls, once the kernel has let go: a device may be slow.
const LAST_CALLS: Duration = Duration::from_secs(120);

/// A mount with the thread that serves it. Dropping it takes it out of the tree of names, and waits
/// a moment for who uses it; errors are lost then.
#[derive(Debug)]
pub struct Serving {
    unmounter: Unmounter,
    thread: Option<JoinHandle<Result<bool>>>,
}

/// How serving has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd {
    /// False: a fault in the file system's code was caught; what is in memory cannot be trusted.
    pub well: bool,
    /// Something held the mount after it was unmounted, and was cut off: a copy in another mount
    /// namespace.
    pub cut_off: bool,
}

impl FuseMount {
    /// Serves it by a thread.
    ///
    /// # Errors
    /// There is no thread; it is not mounted any more then.
    pub fn serve_beside(self) -> Result<Serving> {
        let unmounter = self.unmounter();
        match std::thread::Builder::new().name("fuse".into()).spawn(move || self.serve()) {
            Ok(thread) => Ok(Serving { unmounter, thread: Some(thread) }),
            Err(source) => {
                let path = unmounter.mountpoint().to_path_buf();
                // OK to ignore: why there is no thread says more.
                let _ = unmounter.unmount_lazily();
                Err(MountError::Mount { path, source })
            }
        }
    }
}

impl Serving {
    /// Where it is mounted: absolute, without symbolic links.
    pub fn mountpoint(&self) -> &Path {
        self.unmounter.mountpoint()
    }

    /// Takes it away, from any thread.
    pub fn unmounter(&self) -> &Unmounter {
        &self.unmounter
    }

    /// Unmounts it, and returns when it is served no more. While it is in use here that is tried
    /// again for a moment. What holds it elsewhere is cut off after a moment.
    ///
    /// # Errors
    /// Busy: it is in use, still mounted and served. Held: it is unmounted here, held elsewhere,
    /// and could not be cut off: it is still served there. The connection broke.
    pub fn unmount(&mut self) -> Result<SessionEnd> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.unmounter.unmount() {
                Ok(()) => return self.ended(true),
                Err(MountError::Busy { .. }) if Instant::now() < until => std::thread::sleep(PAUSE),
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes it out of the tree of names, and waits a moment until it is served no more. Whoever
    /// has something of it open is served for as long as that lasts.
    ///
    /// # Errors
    /// Busy: it is still in use. The system refused; the connection broke.
    pub fn unmount_lazily(&mut self) -> Result<SessionEnd> {
        self.unmounter.unmount_lazily()?;
        self.ended(false)
    }

    /// Takes it out of the tree of names, and does not wait: who uses it is served for as long as
    /// this process lives.
    pub fn leave(mut self) {
        if self.thread.take().is_some() {
            // OK to ignore: there is nobody who could do more.
            let _ = self.unmounter.unmount_lazily();
        }
    }

    /// How serving has ended, once the mount is unmounted.
    fn ended(&mut self, may_cut_off: bool) -> Result<SessionEnd> {
        let mut cut_off = false;
        if !self.has_ended_within(PATIENCE) {
            cut_off = self.unmounter.is_held();
            if cut_off && !may_cut_off {
                return Err(MountError::Busy { path: self.mountpoint().to_path_buf() });
            }
            if cut_off {
                self.unmounter.cut_off()?;
            }
            if !self.has_ended_within(LAST_CALLS) {
                let why = "a call to the file system has not returned".to_owned();
                return Err(MountError::Held { path: self.mountpoint().to_path_buf(), why });
            }
        }
        let served = self.thread.take().map_or(Ok(Ok(true)), JoinHandle::join);
        // A panic of a thread that serves is a fault as one of the file system is.
        Ok(SessionEnd { well: served.unwrap_or(Ok(false))?, cut_off })
    }

    /// Whether it is served no more, which is waited for.
    fn has_ended_within(&self, time: Duration) -> bool {
        let Some(thread) = &self.thread else { return true };
        let until = Instant::now() + time;
        while !thread.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // OK to ignore: there is no caller left to report to.
            let _ = self.unmount_lazily();
        }
    }
}
