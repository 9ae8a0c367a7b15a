//! Image files, loop devices and mounts: made for one trap and undone after it.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::OFlags;
use steadfast_host::Folder;
use steadfast_host::{LoopDevice, ToolError};

use super::report::{Step, TrapRun, TrapVerdict};
use crate::program::{run, run_ok};
use crate::target::LIMIT;
use crate::{Result, SuiteError};

/// A folder of image files, and what has been done with them.
pub(super) struct Stage {
    // Dropped last by the one who made it.
    _whole: Rc<Folder>,
    folder: PathBuf,
    steadfast: PathBuf,
    steps: RefCell<Vec<Step>>,
    /// Loop devices by the image they are of, for what people are shown.
    loops: RefCell<Vec<(String, String)>>,
}

/// A loop device of an image. Dropped, it is gone: nobody finds the image by it any more.
pub(super) struct Loop(LoopDevice);

impl Loop {
    pub(super) fn path(&self) -> &str {
        self.0.name()
    }

    /// Writes out what it has in its cache.
    pub(super) fn flush(&self) -> Result<()> {
        self.0.flush().map_err(host_error)
    }

    /// Its device number, as the kernel writes it (`MAJOR:MINOR`).
    pub(super) fn number(&self) -> Result<u64> {
        let stat = rustix::fs::stat(self.path());
        stat.map(|s| s.st_rdev).map_err(|e| SuiteError::host(self.path())(e.into()))
    }
}

/// A mounted image; unmounted when dropped.
pub(super) struct TrapMount {
    at: PathBuf,
    by_steadfast: Option<PathBuf>,
    disk: Option<Loop>,
}

impl TrapMount {
    /// Where.
    pub(super) fn at(&self) -> &Path {
        &self.at
    }

    /// The kernel's device.
    pub(super) fn device(&self) -> Option<&str> {
        self.disk.as_ref().map(Loop::path)
    }

    /// Unmounts, and waits until everything is in the image.
    pub(super) fn unmount(mut self) -> Result<()> {
        match self.by_steadfast.take() {
            Some(program) => {
                let mut umount = Command::new(program);
                run_ok(LIMIT, umount.arg("umount").arg(&self.at))?;
            }
            None => umount(&self.at)?,
        }
        drop(self.disk.take());
        self.at = PathBuf::new();
        Ok(())
    }
}

impl Drop for TrapMount {
    fn drop(&mut self) {
        if self.at.as_os_str().is_empty() {
            return;
        }
        // Nobody is left to report to; the mount must not stay.
        let _ = run(LIMIT, Command::new("umount").arg("-l").arg(&self.at));
    }
}

fn host_error(failed: ToolError) -> SuiteError {
    SuiteError::Target(failed.to_string())
}

/// `umount`, again while something that another thread has just started holds on to it.
fn umount(at: &Path) -> Result<()> {
    let mut last = Ok(String::new());
    for _ in 0..500 {
        last = run_ok(LIMIT, Command::new("umount").arg(at));
        if last.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    last.map(drop)
}

impl Stage {
    /// An empty folder.
    pub(super) fn new(steadfast: &Path) -> Result<Stage> {
        let whole = Folder::new("sfs-traps-");
        let whole = Rc::new(whole.map_err(SuiteError::host(std::env::temp_dir()))?);
        Self::within(whole, "made", steadfast)
    }

    fn within(whole: Rc<Folder>, name: &str, steadfast: &Path) -> Result<Stage> {
        let folder = whole.path().join(name);
        std::fs::create_dir(&folder).map_err(SuiteError::host(&folder))?;
        Ok(Stage {
            _whole: whole,
            folder,
            steadfast: steadfast.to_path_buf(),
            steps: RefCell::default(),
            loops: RefCell::default(),
        })
    }

    /// Another folder with copies of all images.
    pub(super) fn copy(&self, name: &str) -> Result<Stage> {
        let stage = Self::within(Rc::clone(&self._whole), name, &self.steadfast)?;
        let entries = self.folder.read_dir().map_err(SuiteError::host(&self.folder))?;
        for entry in entries.flatten().filter(|e| e.path().is_file()) {
            self.copy_file(&entry.path(), &stage.folder.join(entry.file_name()))?;
        }
        Ok(stage)
    }

    fn copy_file(&self, from: &Path, to: &Path) -> Result<()> {
        let mut cp = Command::new("cp");
        run_ok(LIMIT, cp.arg("--sparse=always").arg(from).arg(to)).map(drop)
    }

    /// An image's path.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What a power cut at this moment would leave of an image that is in use: a loop device
    /// writes into its file at once.
    pub(super) fn cut(&self, image: &str, left: &str) -> Result<()> {
        self.copy_file(&self.path(image), &self.path(left))
    }

    /// Gives an image another's place.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        std::fs::rename(self.path(from), self.path(to)).map_err(SuiteError::host(self.path(from)))
    }

    /// Takes an image away.
    pub(super) fn remove(&self, image: &str) -> Result<()> {
        std::fs::remove_file(self.path(image)).map_err(SuiteError::host(self.path(image)))
    }

    fn words(line: &str) -> (&str, impl Iterator<Item = &str>) {
        let mut words = line.split(' ').filter(|w| !w.is_empty());
        (words.next().unwrap_or_default(), words)
    }

    /// Runs a program that must succeed, and of which nothing is recorded.
    pub(super) fn must(&self, line: &str) -> Result<String> {
        let (program, words) = Self::words(line);
        run_ok(LIMIT, Command::new(program).args(words).current_dir(&self.folder))
    }

    /// Runs a program, as one of the steps; its exit status (-1: a signal's).
    pub(super) fn tool(&self, line: &str) -> Result<i32> {
        let (program, words) = Self::words(line);
        let mut command = Command::new(program);
        let (status, said) = run(LIMIT, command.args(words).current_dir(&self.folder))?;
        let why = if status.success() { String::new() } else { why(&said) };
        Ok(self.step(line, status.code(), &why))
    }

    /// Runs steadfast, as one of the steps; its exit status and all it said.
    pub(super) fn ours(&self, line: &str) -> Result<(i32, String)> {
        let mut command = Command::new(&self.steadfast);
        command.args(line.split(' ')).current_dir(&self.folder);
        // Temporary files may be kept in memory: that is not what is judged.
        match line.split(' ').next() {
            Some("mount") => command.args(["-o", "accept_volatile"]),
            Some("mkfs") => command.arg("--accept-volatile"),
            _ if line.starts_with("journal attach") => command.arg("--accept-volatile"),
            _ => &mut command,
        };
        let (status, said) = run(LIMIT, &mut command)?;
        let messages = said.lines().map(|l| l.strip_prefix("error: ").unwrap_or(l));
        let messages = messages.filter(|l| !l.starts_with("note: ") && !l.is_empty());
        // Lists of blocks and findings are for the person who has lost something.
        let messages: Vec<&str> = messages.filter(|l| !l.starts_with(' ')).take(3).collect();
        let code = self.step(&format!("steadfast {line}"), status.code(), &messages.join(" / "));
        Ok((code, said))
    }

    fn step(&self, line: &str, exit: Option<i32>, said: &str) -> i32 {
        let step = Step { command: self.plain(line), exit, said: self.plain(said) };
        self.steps.borrow_mut().push(step);
        exit.unwrap_or(-1)
    }

    /// A text without what differs from run to run.
    fn plain(&self, text: &str) -> String {
        let folder = format!("{}/", self.folder.display());
        let mut text = text.replace(&folder, "");
        // Longer names first: /dev/loop1 begins /dev/loop10 too.
        let mut loops = self.loops.borrow().clone();
        loops.sort_by_key(|(device, _)| std::cmp::Reverse(device.len()));
        for (device, image) in loops.iter().rev() {
            text = text.replace(device, image);
        }
        without_identities(&text).replace("UUID UUID", "UUID")
    }

    /// A loop device of an image.
    pub(super) fn attach(&self, image: &str) -> Result<Loop> {
        let device = Loop(LoopDevice::attach(&self.path(image)).map_err(host_error)?);
        let mut loops = self.loops.borrow_mut();
        loops.retain(|(path, _)| path != device.path());
        loops.push((device.path().to_owned(), image.to_owned()));
        Ok(device)
    }

    /// An image that is an empty journal device.
    pub(super) fn make_journal(&self, name: &str) -> Result<()> {
        self.must(&format!("truncate -s 8M {name}"))?;
        self.must(&format!("mke2fs -q -F -O journal_dev -b 4096 {name}")).map(drop)
    }

    /// A file system that has its journal on a loop device.
    pub(super) fn make(&self, disk: &str, journal: &Loop) -> Result<()> {
        self.must(&format!("truncate -s 48M {disk}"))?;
        self.must(&format!(
            "mke2fs -q -F -t ext4 -b 4096 -E lazy_itable_init=0 -J device={} {disk}",
            journal.path()
        ))?;
        journal.flush()
    }

    fn mountpoint(&self, disk: &str) -> Result<PathBuf> {
        let at = self.folder.join(format!("at-{disk}"));
        std::fs::create_dir_all(&at).map_err(SuiteError::host(&at))?;
        Ok(at)
    }

    /// Mounts with the kernel, as one of the steps; none: it would not.
    pub(super) fn kernel_mount(&self, disk: &str, options: &str) -> Result<Option<TrapMount>> {
        let device = self.attach(disk)?;
        let at = self.mountpoint(disk)?;
        let log = KernelLog::now();
        let mut command = Command::new("mount");
        command.args(["-t", "ext4"]);
        let mut shown = "mount".to_owned();
        if !options.is_empty() {
            command.args(["-o", options]);
            shown = format!("mount -o {options}");
        }
        let (status, said) = run(LIMIT, command.arg(device.path()).arg(&at))?;
        let why = match status.success() {
            true => String::new(),
            false => log.and_then(|log| log.says_of(device.path())).unwrap_or_else(|| why(&said)),
        };
        self.step(&format!("{shown} {disk}"), status.code(), &why);
        Ok(status.success().then_some(TrapMount { at, by_steadfast: None, disk: Some(device) }))
    }

    /// Mounts with steadfast, as one of the steps; none: it would not.
    pub(super) fn our_mount(&self, disk: &str, options: &str) -> Result<Option<TrapMount>> {
        let at = self.mountpoint(disk)?;
        let options = if options.is_empty() { String::new() } else { format!(" -o {options}") };
        let (exit, _) = self.ours(&format!("mount {disk} at-{disk}{options}"))?;
        let by_steadfast = Some(self.steadfast.clone());
        Ok((exit == 0).then_some(TrapMount { at, by_steadfast, disk: None }))
    }

    /// Forgets the steps so far: they were no part of what is judged.
    pub(super) fn forget_steps(&self) {
        self.steps.borrow_mut().clear();
    }

    /// The end: `lost_is_said` if a loss was reported, `mounted` with the files of these kinds if
    /// it could be mounted in the end.
    pub(super) fn judge(
        &self,
        disk: &str,
        journal: Option<&Loop>,
        mounted: Option<TrapMount>,
        kinds: &[(&str, usize)],
        lost_is_said: bool,
    ) -> Result<TrapRun> {
        let files = kinds.iter().map(|(_, count)| count).sum();
        let (mut files_read_back, in_use) = (0, mounted.is_some());
        if let Some(mounted) = mounted {
            let whole = kinds.iter().map(|(kind, count)| whole_files(&mounted, kind, *count));
            files_read_back = whole.sum();
            mounted.unmount()?;
        }
        let journal = journal.map(|j| format!("-j {} ", j.path())).unwrap_or_default();
        let line = format!("-fn {journal}{disk}");
        let mut e2fsck = Command::new("e2fsck");
        e2fsck.args(line.split(' ')).current_dir(&self.folder);
        let e2fsck_clean = run(LIMIT, &mut e2fsck)?.0.success();
        let outcome = match (in_use, files_read_back == files && e2fsck_clean) {
            (false, _) => TrapVerdict::DeadEnd,
            (true, true) => TrapVerdict::NothingLost,
            (true, false) if lost_is_said && e2fsck_clean => TrapVerdict::LossSaid,
            (true, false) => TrapVerdict::DataLost,
        };
        let steps = self.steps.borrow().clone();
        Ok(TrapRun { steps, e2fsck_clean, files, files_read_back, outcome })
    }
}

/// Contents of a file: too long for its inode, and of more than one block.
const CONTENTS: [u8; 6000] = [0x5a; 6000];

/// Writes files and makes them durable, one by one.
pub(super) fn write_files(mounted: &TrapMount, kind: &str, count: usize) -> Result<()> {
    for i in 0..count {
        let path = mounted.at().join(format!("{kind}{i}"));
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&CONTENTS)?;
            file.sync_all()
        });
        written.map_err(SuiteError::host(path))?;
    }
    Ok(())
}

/// How many of the files are there as they were written.
fn whole_files(mounted: &TrapMount, kind: &str, count: usize) -> usize {
    let paths = (0..count).map(|i| mounted.at().join(format!("{kind}{i}")));
    paths.filter(|path| std::fs::read(path).is_ok_and(|data| data == CONTENTS)).count()
}

/// How many files of a kind there are, whatever is in them.
pub(super) fn count_files(mounted: &TrapMount, kind: &str, count: usize) -> usize {
    (0..count).filter(|i| mounted.at().join(format!("{kind}{i}")).exists()).count()
}

/// The line that says why a program failed: the first that has one of these words.
fn why(said: &str) -> String {
    let words = ["rror", "ail", "UUID", "user", "Can't", "cannot", "ecover", "wrong", "journal"];
    let line = said.lines().map(str::trim).find(|l| words.iter().any(|w| l.contains(w)));
    line.unwrap_or_default().to_owned()
}

/// The kernel's log from a moment on.
struct KernelLog(File);

impl KernelLog {
    /// `None` where it may not be read.
    fn now() -> Option<KernelLog> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut log = File::options().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        log.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(log))
    }

    /// The last that it has said since of a loop device.
    fn says_of(mut self, device: &str) -> Option<String> {
        let name = format!("({}): ", device.trim_start_matches("/dev/"));
        let mut record = vec![0; 8192];
        let mut last = None;
        // Each read is one record; at the end it would wait.
        while let Ok(len) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..len]);
            let line = text.lines().next().unwrap_or_default();
            if let Some((_, said)) = line.split_once(&name) {
                last = Some(format!("kernel: {}", said.trim()));
            }
        }
        last
    }
}

/// UUIDs, times and counts of transactions give way to what they are.
fn without_identities(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.');
    while let Some(first) = rest.chars().next() {
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if len == 0 {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let token = rest[..len].trim_end_matches([':', '.', '-']);
        let after = &rest[token.len().max(1)..];
        let token = if token.is_empty() { &rest[..1] } else { token };
        let digits = token.bytes().all(|b| b.is_ascii_digit());
        let is_uuid = token.len() == 36
            && token.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
            && token.matches('-').count() == 4;
        let is_date = token.ends_with('Z') && token.contains('T') && token.starts_with("20");
        plain.push_str(match () {
            () if is_uuid => "UUID",
            () if is_date || digits && token.len() >= 9 => "TIME",
            () if digits && after.starts_with(" transactions") => "N",
            () if digits && after.starts_with(" blocks)") => "N",
            () => token,
        });
        rest = after;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_goes() {
        let text = "journal: its UUID is 7c48966b-3992-4f63-886d-14366e2c1598, committed at \
                    1795271087, since 2026-11-21T15:20:31Z: 21 transactions, 20 files...";
        let plain = without_identities(text);
        assert_eq!(
            plain,
            "journal: its UUID is UUID, committed at TIME, since TIME: N transactions, 20 files..."
        );
        assert_eq!(without_identities("-: .. é"), "-: .. é");
    }

    #[test]
    fn the_line_that_says_why() {
        assert_eq!(why("one\nCan't find it\nlast\n"), "Can't find it");
        assert_eq!(why(""), "");
    }
}
