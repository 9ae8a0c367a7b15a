//! The control socket of a run: what the program under test, or its test, says while it is
//! recorded.
//!
//! A request is a line of words ([`words`]), an answer a line: `ok`, `ok` and JSON, or `error` and
//! a reason. The same words, and those of LazyFS, may be written to a FIFO ([`fifo`]). Both are in
//! a folder of this user's own, outside of the mounted one. docs/control.md is the page for users.
//!
//! # Invariants
//!
//! 1. What was answered with `ok` is recorded: a mark is an acknowledgement point.
//! 2. Nothing that is said here is kept without a bound, and nobody who says nothing is waited for.

mod fifo;
mod lazyfs;
mod words;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use steadfast_crash::program::{BEGIN, CUT, END, UnsyncedFile, UnsyncedWork, WatchedFs, shown};
use steadfast_devices::filter::record::RecordLog;
use steadfast_runtime::now;
use steadfast_stack::listener::{Listener, bind_private, check_path};
use steadfast_vfs::FileSystem;
use tempfile::TempDir;

use self::fifo::ControlFifo;
use self::words::ControlWord;
use super::printed::AckLines;
use crate::{Usage, terminal};

/// Bytes of a request, at most.
const LINE_MAX: usize = 64 << 10;
/// Instants and parts that may be named: of a thousand instants each gets few states.
const NAMED_MAX: u64 = 1000;
/// Files, and calls about names, that an answer lists.
const LISTED_MAX: usize = 100;
/// The socket's path, for the program.
const SOCKET: &str = "STEADFAST_CONTROL";
/// The FIFO's.
const FIFO: &str = "STEADFAST_CONTROL_FIFO";

/// What the words act on.
pub struct RunControl {
    log: RecordLog,
    lines: AckLines,
    /// Those of a file system whose calls are seen. Whoever is still connected after the run must
    /// not keep it.
    watched: Weak<WatchedFs>,
    mount: PathBuf,
    named: Mutex<PartCounts>,
}

/// How many instants and parts were named so far.
#[derive(Default)]
struct PartCounts {
    cuts: u64,
    parts: u64,
    /// A part has begun and not ended.
    is_open: bool,
}

impl RunControl {
    /// Of a run in the folder `mount`.
    pub fn new(
        log: &RecordLog,
        lines: &AckLines,
        watched: &Arc<WatchedFs>,
        mount: &Path,
    ) -> RunControl {
        RunControl {
            log: log.clone(),
            lines: lines.clone(),
            watched: Arc::downgrade(watched),
            mount: mount.to_owned(),
            named: Mutex::default(),
        }
    }

    /// Does what a line asks for; what there is to say beside `ok`.
    fn answer(&self, line: &[u8]) -> Result<Option<Value>, Usage> {
        let word = ControlWord::of(line, &self.mount)?;
        if self.lines.is_over() {
            usage!("the run is over");
        }
        match word {
            ControlWord::Mark(text) => self.lines.mark(&text)?,
            ControlWord::Cut => {
                let mut named = self.named();
                if named.cuts >= NAMED_MAX {
                    usage!("{NAMED_MAX} instants were named: no more are taken");
                }
                named.cuts += 1;
                self.log.note(CUT, [named.cuts, 0, 0]);
            }
            ControlWord::Begin => {
                let mut named = self.named();
                if named.is_open {
                    usage!("a part has begun already; say 'end' first");
                }
                if named.parts >= NAMED_MAX {
                    usage!("{NAMED_MAX} parts were named: no more are taken");
                }
                (named.is_open, named.parts) = (true, named.parts + 1);
                self.log.note(BEGIN, [named.parts, 0, 0]);
            }
            ControlWord::End => {
                let mut named = self.named();
                if !named.is_open {
                    usage!("no part has begun; say 'begin' first");
                }
                named.is_open = false;
                self.log.note(END, [named.parts, 0, 0]);
            }
            ControlWord::Unsynced => return Ok(Some(self.unsynced()?)),
            ControlWord::Checkpoint => {
                let synced = self.watched()?.sync();
                synced.map_err(|e| Usage(format!("checkpoint: {e}")))?;
            }
            ControlWord::Fail(fault) => {
                let added = self.watched()?.faults().add(fault);
                added.map_err(|e| Usage(e.to_string()))?;
            }
        }
        Ok(None)
    }

    /// The answer as a line.
    fn reply(&self, line: &[u8]) -> String {
        match self.answer(line) {
            Ok(None) => "ok".into(),
            Ok(Some(value)) => format!("ok {value}"),
            Err(Usage(why)) => format!("error {}", why.replace(['\n', '\r'], " ")),
        }
    }

    /// A line of the FIFO.
    fn take(&self, line: Option<&[u8]>) {
        let Some(line) = line else {
            terminal::note(&format!("note: {FIFO}: a line has at most {LINE_MAX} bytes"));
            return;
        };
        // What LazyFS answers is in its log; what has worked need not be said.
        match self.answer(line) {
            Ok(None) => {}
            Ok(Some(value)) => terminal::note(&value.to_string()),
            Err(Usage(why)) => terminal::note(&format!("note: {FIFO}: {why}")),
        }
    }

    fn watched(&self) -> Result<Arc<WatchedFs>, Usage> {
        self.watched.upgrade().ok_or_else(|| Usage("the run is over".into()))
    }

    fn named(&self) -> std::sync::MutexGuard<'_, PartCounts> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsynced(&self) -> Result<Value, Usage> {
        let ms = |age: std::time::Duration| (age.as_secs_f64() * 1e6).round() / 1e3;
        Ok(self.watched()?.with_calls(|calls| {
            let unsynced = UnsyncedWork::of(calls, now());
            let file = |f: &UnsyncedFile| {
                json!({ "path": f.path, "bytes": f.bytes, "calls": f.calls, "ms": ms(f.age) })
            };
            let files: Vec<Value> = unsynced.files.iter().take(LISTED_MAX).map(file).collect();
            let names = unsynced.names.iter().take(LISTED_MAX);
            let names: Vec<String> = names.map(|place| calls[*place].to_string()).collect();
            json!({
                "bytes": unsynced.bytes(),
                "calls": unsynced.calls(),
                "ms": ms(unsynced.age()),
                "file_count": unsynced.files.len(),
                "files": files,
                "name_count": unsynced.names.len(),
                "names": names,
            })
        }))
    }
}

/// The socket and the FIFO, in a folder of their own that goes with them.
pub struct ControlPlace {
    // In this order: what is in the folder goes first.
    fifo: ControlFifo,
    listener: Listener,
    folder: TempDir,
    control: Arc<RunControl>,
}

impl ControlPlace {
    /// Listens for a run.
    pub fn open(control: RunControl) -> Result<ControlPlace> {
        let control = Arc::new(control);
        let folder = private_folder().context("a folder for the control socket")?;
        let socket = folder.path().join("socket");
        let failed = || format!("control socket {}", socket.display());
        let listening = bind_private(&socket).with_context(failed)?;
        let of = Arc::clone(&control);
        let answer = move |line: &[u8]| of.reply(line);
        let listener = Listener::open_text(listening, &socket, LINE_MAX as u64, Arc::new(answer))
            .with_context(failed)?;
        let of = Arc::clone(&control);
        let fifo = ControlFifo::open(&folder.path().join("fifo"), move |line| of.take(line));
        let fifo = fifo.context("the control FIFO")?;
        Ok(ControlPlace { fifo, listener, folder, control })
    }

    /// What the program is told of it.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let at = |name| self.folder.path().join(name);
        [(SOCKET, at("socket")), (FIFO, at("fifo"))]
    }

    /// Takes no more words; what was asked for and never came, in words.
    pub fn close(self) -> Vec<String> {
        let ControlPlace { fifo, listener, folder, control } = self;
        drop((fifo, listener));
        // OK to ignore: it is a folder for things that are gone.
        let _ = folder.close();
        let watched = control.watched.upgrade();
        let waiting = watched.map(|watched| watched.faults().waiting()).unwrap_or_default();
        let never_came = waiting.into_iter().map(|fault| {
            let kind: &str = fault.kind.into();
            let path = if fault.path.is_empty() { ".".into() } else { shown(&fault.path) };
            match fault.times {
                1 => format!("fail next {kind} of {path}: it never came"),
                n => format!("fail next {kind} of {path}: {n} of them never came"),
            }
        });
        never_came.collect()
    }
}

/// A folder that only this user may enter, whose paths are short enough for a socket.
fn private_folder() -> std::io::Result<TempDir> {
    let made = |at: &Path| {
        let mut builder = tempfile::Builder::new();
        builder.prefix("steadfast-control-").permissions(Permissions::from_mode(0o700));
        builder.tempdir_in(at)
    };
    let usual = made(&std::env::temp_dir())?;
    match check_path(&usual.path().join("socket")) {
        Ok(()) => Ok(usual),
        Err(_) => made(Path::new("/tmp")),
    }
}

#[cfg(test)]
mod tests {
    use steadfast_crash::program::LINE;
    use steadfast_vfs::HostFs;

    use super::*;

    fn control(log: &RecordLog, lines: &AckLines) -> RunControl {
        let fs = HostFs::open("/").unwrap();
        let watched = Arc::new(WatchedFs::new(Arc::new(fs), log));
        RunControl::new(log, lines, &watched, Path::new("/m"))
    }

    #[test]
    fn marks_are_lines_and_instants_are_notes() {
        let log = RecordLog::new();
        let lines = AckLines::new(&log);
        let control = control(&log, &lines);
        lines.add(b"printed\n");
        for (line, answer) in [
            ("mark acked 17", "ok"),
            ("end", "error no part has begun; say 'begin' first"),
            ("begin", "ok"),
            ("begin", "error a part has begun already; say 'end' first"),
            ("cut", "ok"),
            ("end", "ok"),
            ("mark", "error 'mark' is unknown"),
        ] {
            let said = control.reply(line.as_bytes());
            assert!(said.starts_with(answer), "{line}: {said}");
        }
        // The file system is gone.
        for late in ["unsynced", "checkpoint", "fail next fsync of x"] {
            assert_eq!(control.reply(late.as_bytes()), "error the run is over", "{late}");
        }
        let said = lines.lines();
        let texts: Vec<_> = said.iter().map(|l| (&l.text[..], l.marked)).collect();
        assert_eq!(texts, [(&b"printed"[..], false), (b"acked 17", true)]);
        let recording = log.take();
        let labels: Vec<u64> = recording.notes().iter().map(|note| note.label).collect();
        assert_eq!(labels, [LINE, LINE, BEGIN, CUT, END]);
        lines.end();
        assert_eq!(control.reply(b"mark late"), "error the run is over");
        assert_eq!(control.reply(b"cut"), "error the run is over");
    }

    #[test]
    fn what_is_named_is_bounded() {
        let log = RecordLog::new();
        let lines = AckLines::new(&log);
        let control = control(&log, &lines);
        let taken =
            |word: &[u8]| (0..2 * NAMED_MAX).filter(|_| control.reply(word) == "ok").count();
        assert_eq!(taken(b"cut") as u64, NAMED_MAX);
        let long = [&b"mark "[..], &vec![b'x'; 60_000]].concat();
        let kept = taken(&long);
        assert!((1000..1200).contains(&kept), "{kept}");
        assert!(control.reply(&long).starts_with("error too much"), "{}", lines.left_out());
        assert!(lines.left_out() > 0);
    }

    #[test]
    fn only_this_user_may_enter_the_folder() {
        let log = RecordLog::new();
        let lines = AckLines::new(&log);
        let place = ControlPlace::open(control(&log, &lines)).unwrap();
        let [(_, socket), (_, fifo)] = place.environment();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = socket.parent().unwrap().to_owned();
        assert_eq!((mode(&folder), mode(&socket), mode(&fifo)), (0o700, 0o600, 0o600));
        assert_eq!(place.close(), Vec::<String>::new());
        assert!(!folder.exists());
    }
}
