//! Manual pages and completions, generated from the command line's own description.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::cli::Cli;

/// What every command ends with, unless it has words of its own for it.
const EXIT_STATUS: &str =
    "Exit status: 0 good, 1 a problem was found, 2 used wrongly, 3 not supported.";

/// The command line, for the parser as for the pages: each command says its exit status.
pub fn command() -> Command {
    Cli::command().mut_subcommands(with_exit_status)
}

fn with_exit_status(command: Command) -> Command {
    let command = command.mut_subcommands(with_exit_status);
    if command.is_disable_help_flag_set() {
        // It has a help of its own.
        return command;
    }
    let end = match command.get_after_help().map(ToString::to_string) {
        Some(text) if text.contains("Exit status") => return command,
        Some(text) => format!("{text}\n\n{EXIT_STATUS}"),
        None => EXIT_STATUS.to_owned(),
    };
    command.after_help(end)
}

/// Writes a page for the program and one for each command into `folder`.
pub fn man(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let command = command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())
}

/// Writes completions for `shell` to `out`.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn std::io::Write) {
    clap_complete::generate(shell, &mut command(), "steadfast", &mut { out });
}

#[cfg(test)]
mod tests {
    use super::command;

    /// Terminals have 80 columns; what is aligned by hand must not be broken there.
    #[test]
    fn examples_and_tables_fit_a_terminal() {
        fn too_wide(command: &clap::Command, found: &mut Vec<String>) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for line in texts.into_iter().flatten().map(ToString::to_string) {
                found.extend(line.lines().filter(|l| l.chars().count() > 80).map(str::to_owned));
            }
            command.get_subcommands().for_each(|c| too_wide(c, found));
        }
        let mut found = Vec::new();
        too_wide(&command(), &mut found);
        assert!(found.is_empty(), "{found:#?}");
    }
}
