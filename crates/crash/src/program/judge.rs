//! A user's own judge: any command that looks at a recovered tree, or code of this process.

use std::collections::HashMap;
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use steadfast_devices::store::{Digest, Store};

use super::Tree;

/// Bytes of the command's output that are kept.
const OUTPUT_KEPT: u64 = 64 << 10;

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
    said: Mutex<HashMap<(u128, u128), Judgement>>,
}

impl<'a> AskedOnce<'a> {
    /// Asks this one.
    pub fn new(judge: &'a dyn Judges) -> AskedOnce<'a> {
        AskedOnce { judge, said: Mutex::default() }
    }

    fn said(&self) -> MutexGuard<'_, HashMap<(u128, u128), Judgement>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Judges for AskedOnce<'_> {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement> {
        let key = (left.tree.digest(), Digest::of(printed));
        if let Some(said) = self.said().get(&key) {
            return Ok(said.clone());
        }
        // Not while it is locked: others ask, too. What could not be asked is asked again.
        let said = self.judge.judge(left, printed)?;
        self.said().insert(key, said.clone());
        Ok(said)
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
    /// After so long it is killed, with everything that it has started in its process group.
    pub limit: Duration,
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
pub fn scratch() -> io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("steadfast-crash-");
        builder
    };
    builder().tempdir_in(memory).or_else(|_| builder().tempdir())
}

impl Command {
    /// Judges a tree.
    ///
    /// # Errors
    /// The tree cannot be written or the shell not started: this says nothing of the tree.
    pub fn judge(&self, tree: &Tree, printed: &[u8]) -> io::Result<Judgement> {
        let folder = scratch()?;
        // A judge may become another user, as a server must that does not run as root.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
        let at = |name: &str| -> PathBuf { folder.path().join(name) };
        std::fs::create_dir(at("tree"))?;
        tree.write_to(&at("tree"))?;
        std::fs::write(at("printed"), printed)?;
        let output = File::create_new(at("output"))?;
        let mut child = std::process::Command::new("sh")
            .args(["-c", &self.command])
            .current_dir(at("tree"))
            .env("STEADFAST_TREE", at("tree"))
            .env("STEADFAST_PRINTED", at("printed"))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let ended = self.wait(&mut child)?;
        let mut text = Vec::new();
        File::open(at("output"))?.take(OUTPUT_KEPT).read_to_end(&mut text)?;
        let output = String::from_utf8_lossy(&text).trim().to_owned();
        let bad = match ended {
            None => Some(format!("took longer than {} s", self.limit.as_secs_f64())),
            Some(status) if !status.success() => Some(in_words(status)),
            Some(_) => self
                .prints
                .as_ref()
                .filter(|wanted| output != wanted.trim())
                .map(|wanted| format!("was to print {:?}", wanted.trim())),
        };
        Ok(Judgement { bad, output })
    }

    /// Waits for the command's end; `None`: it took too long. Nothing of its group is left.
    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let end = Instant::now() + self.limit;
        let mut pause = Duration::from_micros(300);
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if Instant::now() >= end => break None,
                None => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        // OK to ignore: mostly nobody is left.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        if status.is_none() {
            child.wait()?;
        }
        Ok(status)
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

impl Judgement {
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

    fn judge(command: &str, prints: Option<&str>, limit: f64) -> Judgement {
        let limit = Duration::from_secs_f64(limit);
        let prints = prints.map(str::to_owned);
        let command = Command { command: command.into(), prints, limit };
        command.judge(&tree(), b"one\ntwo\n").unwrap()
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

    #[test]
    fn status_and_output_decide() {
        assert_eq!(judge("grep -q text config", None, 60.0).bad, None);
        let bad = judge("cat config; exit 3", None, 60.0);
        assert_eq!(bad.summary().unwrap(), "the judge ended with status 3: text");
        assert_eq!(judge("echo ok", Some("ok"), 60.0).bad, None);
        let bad = judge("exit 3", None, 60.0).summary().unwrap();
        assert_eq!(bad, "the judge ended with status 3 and printed nothing");
        let bad = judge("echo not ok", Some("ok"), 60.0).summary().unwrap();
        assert_eq!(bad, "the judge was to print \"ok\": not ok");
        let both = "cd /; test -f $STEADFAST_TREE/config && tail -n 1 $STEADFAST_PRINTED";
        assert_eq!(judge(both, Some("two"), 60.0).bad, None);
    }

    #[test]
    fn who_takes_too_long_is_killed_with_its_children() {
        let before = Instant::now();
        let slow = judge("sleep 600 & sleep 600", None, 0.2);
        assert_eq!(slow.bad.unwrap(), "took longer than 0.2 s");
        assert!(before.elapsed() < Duration::from_secs(300));
    }
}
