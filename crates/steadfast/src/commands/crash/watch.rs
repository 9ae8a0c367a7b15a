//! What is run, where, and who gets its output.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::client::ClientPlan;
use super::control::ControlPlace;
use super::printed::LineOutput;

/// Where processes of a run work.
#[derive(Clone, Copy)]
pub struct RunPlace<'a> {
    /// The mounted folder.
    pub folder: &'a Path,
    /// Where they are listened to.
    pub control: Option<&'a ControlPlace>,
}

impl RunPlace<'_> {
    /// A command that is told of it.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(found(name));
        command
            .current_dir(self.folder)
            .env("STEADFAST_MOUNT", self.folder)
            .env("PWD", self.folder)
            .envs(self.control.map(ControlPlace::environment).into_iter().flatten());
        command
    }
}

/// What to run, and who gets its output.
pub struct Watch<'a> {
    /// The program and its arguments.
    pub program: &'a [String],
    /// What drives it, if it is a server.
    pub client: Option<&'a ClientPlan>,
    /// How long to go on after its end.
    pub linger: Duration,
    /// Gets what the program prints.
    pub shown: LineOutput<'a>,
    /// How often somebody has asked to stop.
    pub stops: &'a AtomicUsize,
    /// How many of these have stopped something: each stops one step.
    pub answered: usize,
    /// Lines of the program that were too many: neither shown nor recorded.
    pub left_out: u64,
    /// Called with the progress: a share (0 to 1), and what is done, in words.
    pub progress: &'a dyn Fn(f64, &str),
    /// Where in the program its calls are made is to be known.
    pub stacks: bool,
}

impl Watch<'_> {
    /// Whether somebody asks to stop the step that is under way.
    pub fn is_asked(&self) -> bool {
        self.stops.load(Ordering::Relaxed) > self.answered
    }
}

/// A program named by a relative path is looked for where the caller is, not in the mount; if it is
/// not there, the mount may have it.
fn found(name: &str) -> PathBuf {
    let path = Path::new(name);
    match path.canonicalize() {
        Ok(absolute) if name.contains('/') => absolute,
        _ => path.to_owned(),
    }
}
