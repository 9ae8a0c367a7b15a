//! A FIFO that takes the same words, for who knows LazyFS: nobody answers there, so answers are
//! printed as notes.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::io::Errno;

use super::LINE_MAX;

/// How often the reader looks whether it is to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The FIFO, read by a thread of its own until this is dropped.
pub struct ControlFifo {
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

impl ControlFifo {
    /// Makes it, for this user alone; `take` gets each line without its end, `None` for one that
    /// is too long.
    pub fn open(
        path: &Path,
        take: impl Fn(Option<&[u8]>) + Send + 'static,
    ) -> std::io::Result<ControlFifo> {
        mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?;
        // Also for writing: it never ends because a writer has gone.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = File::from(open(path, flags, Mode::empty())?);
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let read = move || {
            let mut line = PartialLine::default();
            loop {
                // What was written before the end is still taken.
                let is_last = until.load(Ordering::Relaxed);
                let ended = read_all(&pipe, &mut line, &take);
                if ended || is_last {
                    break;
                }
                // OK to ignore an error: the read says what is wrong.
                let _ = poll(&mut [PollFd::new(&pipe.as_fd(), PollFlags::IN)], Some(&LOOK));
            }
        };
        let reader = std::thread::Builder::new().name("fifo".into()).spawn(read)?;
        Ok(ControlFifo { is_over, reader: Some(reader) })
    }
}

impl Drop for ControlFifo {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // OK to ignore: it has nothing to say.
            let _ = reader.join();
        }
    }
}

/// A line that has begun.
#[derive(Default)]
struct PartialLine {
    text: Vec<u8>,
    /// It is too long, and its rest is left out.
    is_long: bool,
}

/// Takes the lines that are there; whether no more can be read.
fn read_all(pipe: &File, line: &mut PartialLine, take: &impl Fn(Option<&[u8]>)) -> bool {
    let mut piece = [0; 4096];
    // Who writes faster than this reads is read for a while, not for ever.
    for _ in 0..256 {
        let count = match rustix::io::read(pipe, &mut piece) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        };
        for part in piece[..count].split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            let part = part.strip_suffix(b"\n").unwrap_or(part);
            line.is_long |= line.text.len() + part.len() > LINE_MAX;
            if !line.is_long {
                line.text.extend_from_slice(part);
            }
            if ends {
                let PartialLine { text, is_long } = std::mem::take(line);
                take((!is_long).then_some(&text[..]));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn lines_come_from_several_writers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let taken = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&taken);
        let take = move |line: Option<&[u8]>| to.lock().unwrap().push(line.map(<[u8]>::to_vec));
        let fifo = ControlFifo::open(&path, take).unwrap();
        let write = |bytes: &[u8]| {
            File::options().write(true).open(&path).unwrap().write_all(bytes).unwrap();
        };
        write(b"one\ntw");
        write(b"o\n\n");
        write(&[&[b'x'; 3 * LINE_MAX][..], b"\nlast\nnever ended"].concat());
        drop(fifo);
        let taken = taken.lock().unwrap();
        let line = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(taken[..], [line("one"), line("two"), line(""), None, line("last")]);
    }
}
