//! Manual pages and completions, generated from the command line's own description.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::Cli;

/// Writes a page for the program and one for each command into `folder`.
pub fn man(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())
}

/// Writes completions for `shell` to `out`.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn std::io::Write) {
    clap_complete::generate(shell, &mut Cli::command(), "steadfast", &mut { out });
}
