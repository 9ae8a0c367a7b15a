//! `--judge-files`: how judges get the files that a cut has left.

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use steadfast_crash::program::judge_fs::JudgeFs;
use steadfast_crash::program::supervisor::Namespaces;
use steadfast_crash::program::{
    Command, JudgeCounts, JudgePlace, Judgement, Judges, JudgesAtOnce, RecoveredTree, ServedJudge,
};
use steadfast_fuse::Options;

use super::served::ServedFolder;

/// Requests of judges that are answered at the same time.
const THREADS: usize = 4;

/// How judges get the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum JudgeFiles {
    /// Served, where this machine lets us mount.
    Auto,
    /// From memory, by a file system that sees what is read.
    Served,
    /// Written into a folder for each.
    Copied,
}

/// A judge that gets files.
pub enum JudgeWithFiles<'a> {
    /// They are served.
    Served(Box<ServedJudge<'a>>),
    /// They are copied.
    Copied(&'a Command),
}

impl JudgeFiles {
    /// Where judges work; `None`: each gets a copy.
    pub fn place(self) -> Result<Option<JudgePlace>> {
        match self {
            JudgeFiles::Copied => Ok(None),
            JudgeFiles::Auto => Ok(served().ok()),
            JudgeFiles::Served => {
                served().map(Some).context("--judge-files served: this machine does not let us")
            }
        }
    }
}

fn served() -> Result<JudgePlace> {
    let fs = Arc::new(JudgeFs::default());
    // What is read ahead of a judge would count as read by it.
    let options = Options { threads: THREADS, read_ahead: false, ..Options::default() };
    let folder = ServedFolder::new(Arc::clone(&fs) as _, options)?;
    let at = folder.path().to_owned();
    Ok(JudgePlace { fs, at, forget: Box::new(move |name| folder.forget(name)) })
}

impl<'a> JudgeWithFiles<'a> {
    /// Works there, if there is a place.
    pub fn new(
        judge: &'a Command,
        place: Option<&'a JudgePlace>,
        at_once: JudgesAtOnce,
    ) -> JudgeWithFiles<'a> {
        match place {
            Some(place) => JudgeWithFiles::Served(ServedJudge::new(judge, place, at_once).into()),
            None => JudgeWithFiles::Copied(judge),
        }
    }

    /// How often it was asked, where that is counted.
    pub fn counts(&self) -> Option<JudgeCounts> {
        match self {
            JudgeWithFiles::Served(judge) => Some(judge.counts()),
            JudgeWithFiles::Copied(_) => None,
        }
    }
}

impl Judges for JudgeWithFiles<'_> {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> std::io::Result<Judgement> {
        match self {
            JudgeWithFiles::Served(judge) => judge.judge(left, printed),
            JudgeWithFiles::Copied(judge) => judge.judge(left.tree, printed),
        }
    }
}

/// A judge who gets a tree without set-id bits: a recording may be anybody's, and the tree is where
/// others can go. With `owners` the tree is as it was recorded.
pub struct UnprivilegedJudge<'a> {
    /// Who judges.
    pub judge: &'a dyn Judges,
    /// Leave the tree as it is.
    pub owners: bool,
}

impl Judges for UnprivilegedJudge<'_> {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> std::io::Result<Judgement> {
        if self.owners {
            return self.judge.judge(left, printed);
        }
        let tree = left.tree.without_privileges(None);
        self.judge.judge(&RecoveredTree { tree: &tree, ..*left }, printed)
    }
}

/// How many judges there are at the same time: so many if that was asked for, else as many as keep
/// the processors busy, where they are not in each other's way.
pub fn at_once(asked: Option<usize>, workers: usize, judge: &Command) -> JudgesAtOnce {
    match (asked, judge.supervisor.namespaces()) {
        (None, Namespaces::Own) if workers > 1 => JudgesAtOnce::measured(workers),
        _ => JudgesAtOnce::fixed(workers),
    }
}
