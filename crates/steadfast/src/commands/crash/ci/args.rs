//! The options of the reports for a CI.

use std::path::PathBuf;

use clap::Args;

/// Which reports.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Write what was found to FILE, as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write what was found to FILE, as SARIF, which code scanning reads
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Print annotations of a GitHub workflow after the report (with --json to the standard error)
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub annotations: Annotations,
    /// Findings that FILE has are known: they are reported, and do not count
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write what was found to FILE as known: a new baseline, or the one of --baseline
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,
}

/// Whether annotations are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Annotations {
    /// In a workflow of GitHub's: where GITHUB_ACTIONS is true
    Auto,
    /// As GitHub reads them
    Github,
    /// No
    None,
}

impl Annotations {
    /// Whether they are.
    pub fn are_wanted(self) -> bool {
        match self {
            Annotations::Auto => std::env::var_os("GITHUB_ACTIONS").is_some_and(|v| v == "true"),
            Annotations::Github => true,
            Annotations::None => false,
        }
    }
}
