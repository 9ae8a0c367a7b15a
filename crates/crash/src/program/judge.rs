//! A user's own judge: any command that looks at a recovered tree, or code of this process.

use std::collections::HashMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_devices::store::{Digest, Store};

use steadfast_host::Folder;

use super::Tree;
use super::judge_fs::{PRINTED, TREE};
use super::supervisor::{JudgeCommand, Supervisor};

/// Bytes of the command's output that are kept.
const OUTPUT_KEPT: usize = 64 << 10;

/// How a verdict begins of a judge that did not end.
const TOOK_LONGER: &str = "took longer than";
/// The same of one that was killed.
const BY_SIGNAL: &str = "was ended by signal";

/// Where files are in memory.
const MEMORY: &str = "/dev/shm";

/// What a recovery has left.
#[derive(Clone, Copy)]
pub struct RecoveredTree<'a> {
    /// The files.
    pub tree: &'a Tree,
    /// The contents of the devices, where they are known.
    pub contents: Option<&'a [Store]>,
}

/// Whoever judges what a recovery has left. Asked by several threads at once.
pub trait Judges: Send + Sync {
    /// Judges it; `printed` are the lines that the program had printed before the cut.
    ///
    /// # Errors
    /// The judge could not be asked: this says nothing of what was left.
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement>;
}

/// A judge that is asked once of each tree and what had been printed: different states of different
/// models leave the same tree. It is for a judge that sees nothing else.
pub struct AskedOnce<'a> {
    judge: &'a dyn Judges,
    said: Mutex<HashMap<(u128, u128), Answer>>,
    answered: Condvar,
}

enum Answer {
    /// Somebody is asking.
    Awaited,
    Given(Judgement),
}

impl<'a> AskedOnce<'a> {
    /// Asks this one.
    pub fn new(judge: &'a dyn Judges) -> AskedOnce<'a> {
        AskedOnce { judge, said: Mutex::default(), answered: Condvar::new() }
    }

    fn said(&self) -> MutexGuard<'_, HashMap<(u128, u128), Answer>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Judges for AskedOnce<'_> {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement> {
        let key = (left.tree.digest(), Digest::of(printed));
        let mut said = self.said();
        loop {
            match said.get(&key) {
                Some(Answer::Given(said)) => return Ok(said.clone()),
                Some(Answer::Awaited) => {
                    said = self.answered.wait(said).unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        said.insert(key, Answer::Awaited);
        drop(said);
        // Not while it is locked: others ask, too. What could not be asked is asked again.
        let answer = self.judge.judge(left, printed);
        let mut said = self.said();
        match &answer {
            Ok(given) => said.insert(key, Answer::Given(given.clone())),
            Err(_) => said.remove(&key),
        };
        self.answered.notify_all();
        answer
    }
}

/// A command that judges a recovered tree: `sh -c` runs it in the tree. It finds the tree's path
/// in `STEADFAST_TREE`, and in `STEADFAST_PRINTED` that of a file with the lines that the program
/// had printed before the cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// For the shell.
    pub command: String,
    /// Beside ending with status 0 it must print this, blanks at both ends aside.
    pub prints: Option<String>,
    /// After so long it is killed.
    pub limit: Duration,
    /// Runs it, and ends what it has started and left.
    pub supervisor: Supervisor,
}

/// What a judge said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Why the tree is not good; `None`: it is.
    pub bad: Option<String>,
    /// What it printed, both outputs; shortened.
    pub output: String,
}

impl Judges for Command {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement> {
        Command::judge(self, left.tree, printed)
    }
}

/// Where trees are put for judges: in memory where there is a place for that.
fn scratch() -> io::Result<Folder> {
    const PREFIX: &str = "steadfast-crash-";
    Folder::new_in(Path::new(MEMORY), PREFIX).or_else(|_| Folder::new(PREFIX))
}

/// For what a judge prints; it has no name.
fn output_file() -> io::Result<File> {
    tempfile::tempfile_in(MEMORY).or_else(|_| tempfile::tempfile())
}

/// Fills the buffer from the file's beginning, as far as that reaches; the judge has moved the
/// place where it goes on.
fn read_from_start(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    loop {
        match file.read_at(&mut buffer[count..], count as u64)? {
            0 => return Ok(count),
            more => count += more,
        }
    }
}

impl Command {
    /// Judges a tree.
    ///
    /// # Errors
    /// The tree cannot be written or the command not run: this says nothing of the tree.
    pub fn judge(&self, tree: &Tree, printed: &[u8]) -> io::Result<Judgement> {
        let folder = scratch()?;
        // A judge of root's may become another user, as a server must that does not run as root.
        // Others cannot list the outer one, and do not know what the inner one is called.
        let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode))?;
        let inner = tempfile::Builder::new().rand_bytes(24).tempdir_in(folder.path())?.keep();
        std::fs::set_permissions(&inner, Permissions::from_mode(mode))?;
        let at = |name: &str| -> PathBuf { inner.join(name) };
        std::fs::create_dir(at(TREE))?;
        tree.write_to(&at(TREE))?;
        std::fs::write(at(PRINTED), printed)?;
        self.judge_in(&inner).map(|(said, _)| said)
    }

    /// Judges what is in a folder under the names of [`TREE`] and [`PRINTED`]; with the processors'
    /// time that it took.
    pub(super) fn judge_in(&self, folder: &Path) -> io::Result<(Judgement, Duration)> {
        let (in_tree, printed) = (folder.join(TREE), folder.join(PRINTED));
        let output = output_file()?;
        let ended = self.supervisor.run(JudgeCommand {
            command: &self.command,
            folder: &in_tree,
            environment: &[("STEADFAST_TREE", &in_tree), ("STEADFAST_PRINTED", &printed)],
            output: output.try_clone()?,
            limit: self.limit,
        })?;
        let mut text = vec![0; OUTPUT_KEPT];
        let count = read_from_start(&output, &mut text)?;
        let output = String::from_utf8_lossy(&text[..count]).trim().to_owned();
        let bad = match ended {
            None => Some(format!("{TOOK_LONGER} {} s", self.limit.as_secs_f64())),
            Some(end) if !end.status.success() => Some(in_words(end.status)),
            Some(_) => self
                .prints
                .as_ref()
                .filter(|wanted| output != wanted.trim())
                .map(|wanted| format!("was to print {:?}", wanted.trim())),
        };
        // The folder is gone by the time that somebody reads it, and has another name each time.
        let named = [(&printed, "$STEADFAST_PRINTED"), (&in_tree, "$STEADFAST_TREE")];
        let output = named.iter().fold(output, |output, (path, name)| match path.to_str() {
            Some(path) => output.replace(path, name),
            None => output,
        });
        Ok((Judgement { bad, output }, ended.map_or(Duration::ZERO, |end| end.used)))
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("{BY_SIGNAL} {signal}"),
        (None, None) => "ended".into(),
    }
}

impl Judgement {
    /// Whether the shell found no such command, or could not run it: that says nothing of the tree.
    pub fn cannot_run(&self) -> bool {
        matches!(self.bad.as_deref(), Some("ended with status 126" | "ended with status 127"))
    }

    /// Whether it may have come of the machine as well as of the tree: it took too long, or was
    /// killed.
    pub(super) fn may_be_chance(&self) -> bool {
        let bad = self.bad.as_deref().unwrap_or_default();
        bad.starts_with(TOOK_LONGER) || bad.starts_with(BY_SIGNAL)
    }

    /// The verdict with the first line of the output.
    pub fn summary(&self) -> Option<String> {
        let bad = self.bad.as_ref()?;
        let mut lines = self.output.lines().filter(|line| !line.trim().is_empty());
        Some(match lines.next() {
            Some(line) => format!("the judge {bad}: {}", line.trim()),
            None => format!("the judge {bad} and printed nothing"),
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast_vfs::HostFs;

    use super::*;

    fn tree() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), "text\n").unwrap();
        Tree::read(&HostFs::open(folder.path()).unwrap()).unwrap()
    }

    #[test]
    fn a_tree_is_asked_about_once() {
        struct Counts(Mutex<u32>);
        impl Judges for Counts {
            fn judge(&self, _: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement> {
                let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                *asked += 1;
                if printed.is_empty() {
                    return Err(io::Error::other("not now"));
                }
                Ok(Judgement { bad: None, output: asked.to_string() })
            }
        }
        let counts = Counts(Mutex::new(0));
        let once = AskedOnce::new(&counts);
        let (some, none) = (tree(), Tree::default());
        let ask = |tree: &Tree, printed: &[u8]| {
            once.judge(&RecoveredTree { tree, contents: None }, printed)
                .map(|said| said.output)
                .ok()
        };
        let all = [(&some, &b"a"[..]), (&some, b"a"), (&some, b"b"), (&none, b"a"), (&none, b"a")];
        let said = all.map(|(tree, printed)| ask(tree, printed).unwrap());
        assert_eq!(said, ["1", "1", "2", "3", "3"]);
        // What could not be asked is not kept.
        assert_eq!((ask(&some, b""), ask(&some, b""), *counts.0.lock().unwrap()), (None, None, 5));
    }
}
