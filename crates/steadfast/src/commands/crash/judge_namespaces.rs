//! `--judge-namespaces`: whether judges run in namespaces of their own.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use steadfast_crash::program::supervisor::{Namespaces, Supervisor};

use crate::Usage;

/// This program, whatever has become of its file.
const OURSELVES: &str = "/proc/self/exe";

/// When a judge gets namespaces of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum JudgeNamespaces {
    /// Where this machine lets us.
    Auto,
    /// Or nothing is judged.
    Always,
    /// What a judge leaves is ended all the same.
    Never,
}

impl JudgeNamespaces {
    /// Who runs judges so.
    pub fn supervisor(self) -> Result<Supervisor, Usage> {
        let shared = Supervisor::new(OURSELVES, Namespaces::Shared);
        if self == JudgeNamespaces::Never {
            return Ok(shared);
        }
        let own = Supervisor::new(OURSELVES, Namespaces::Own);
        match own.tried() {
            Ok(()) => Ok(own),
            Err(_) if self == JudgeNamespaces::Auto => Ok(shared),
            Err(e) => usage!("--judge-namespaces always: this machine does not let us: {e}"),
        }
    }
}
