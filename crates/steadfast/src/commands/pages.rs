//! Manual pages and completions, generated from the command line's own description.

use std::path::Path;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use steadfast_lab::scenario::Scenario;
use steadfast_setup::form::lines;

use super::whole_file::{self, place};
use crate::cli::{Cli, examples};

/// What every command ends with, unless it has words of its own for it.
const EXIT_STATUS: &str =
    "Exit status: 0 good, 1 a problem was found, 2 used wrongly, 3 not supported.";

/// The commands by what they are for.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure speed and data loss, and choose", &["lab", "sweep", "iozone", "fio", "dd", "hdparm"]),
    ("Test a program under power cuts", &["crash", "trace"]),
    (
        "Make, mount and change file systems",
        &[
            "mkfs", "mount", "umount", "status", "transact", "rollback", "journal", "replay",
            "check", "info", "ls", "cat", "get", "put", "mkdir", "rm", "extents",
        ],
    ),
    (
        "Volumes, memory, and the process that keeps them",
        &["volume", "pmem", "serve", "host", "iostat", "top", "svm"],
    ),
    ("About the program", &["help", "man", "completions"]),
];
/// Columns of a command's name.
const NAME: usize = 13;
/// Columns of the help.
const WIDTH: usize = 80;

/// The command line, for the parser as for the pages: each command says its exit status, and has
/// examples; those of the program are in groups.
pub fn command() -> Command {
    let command = Cli::command().mut_subcommands(|of| with_examples(of, ""));
    let command = command.mut_subcommands(with_exit_status);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}\
         {{after-help}}",
        grouped(&command)
    );
    command.help_template(template)
}

/// The commands in their groups, a line or more each.
fn grouped(command: &Command) -> String {
    let about = |name: &str| match command.find_subcommand(name).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        None => "Print this message or the help of a command".to_owned(),
    };
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("\n{heading}:\n");
        for name in names {
            let lines = lines(&about(name), WIDTH - 2 - NAME);
            let indents = std::iter::once(*name).chain(std::iter::repeat(""));
            for (name, line) in indents.zip(lines) {
                text += &format!("  {name:NAME$}{line}\n");
            }
        }
    }
    text
}

/// With the examples that stand in a table; `path`: what the command is below.
fn with_examples(command: Command, path: &str) -> Command {
    let path = format!("{path} {}", command.get_name()).trim().to_owned();
    let command = command.mut_subcommands(|below| with_examples(below, &path));
    match (examples::of(&path), command.get_after_help().map(ToString::to_string)) {
        (None, _) => command,
        (Some(examples), None) => command.after_help(examples),
        (Some(examples), Some(more)) => command.after_help(format!("{examples}\n\n{more}")),
    }
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
    place::folder(folder, true).with_context(|| folder.display().to_string())?;
    let mut command = command().disable_help_subcommand(true);
    command.build();
    pages(&command, folder)
}

/// The page of a command, and of all below it. Each is there whole or not at all.
fn pages(command: &Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = with_value_names(&String::from_utf8_lossy(&text), command);
    let text = with_lines_kept(&text);
    whole_file::write(&path, text).with_context(|| path.display().to_string())
}

/// The line of the synopsis, in which the options have no values, with the names of these.
fn with_value_names(page: &str, command: &Command) -> String {
    const HEAD: &str = ".SH SYNOPSIS\n";
    let Some((before, rest)) = page.split_once(HEAD) else { return page.to_owned() };
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let mut line = line.to_owned();
    for option in command.get_opts().filter(|option| option.get_action().takes_values()) {
        let Some(names) = option.get_value_names() else { continue };
        let names: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
        let names = names.join(" ").replace('-', "\\-");
        // As the page has it.
        let (found, bold) = match (option.get_long(), option.get_short()) {
            (Some(long), _) => {
                let bold = format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"));
                (bold.clone(), bold)
            }
            (None, Some(short)) => (format!("\\fB\\-{short} \\fR"), format!("\\fB\\-{short}\\fR")),
            (None, None) => continue,
        };
        line = line.replacen(&found, &format!("{bold} \\fI{names}\\fR"), 1);
    }
    format!("{before}{HEAD}{line}\n{after}")
}

/// What follows the options of a help text has lines of its own, which a page would fill.
fn with_lines_kept(page: &str) -> String {
    const HEAD: &str = ".SH EXTRA\n";
    let Some((before, rest)) = page.split_once(HEAD) else { return page.to_owned() };
    let (text, after) = match rest.find("\n.SH ") {
        Some(at) => rest.split_at(at + 1),
        None => (rest, ""),
    };
    let (head, text) = match text.split_once('\n') {
        Some(("Example:" | "Examples:", text)) => ("EXAMPLES", text),
        _ => ("NOTES", text),
    };
    format!("{before}.SH {head}\n.nf\n{text}.fi\n{after}")
}

/// A command line whose scenarios have the names of those that come with the program: a shell
/// offers them, and files as before.
fn with_names(command: Command) -> Command {
    let of_scenario = |arg: Arg| match arg.get_id().as_str() {
        "scenario" | "stack" => arg.value_parser(PossibleValuesParser::new(Scenario::own_names())),
        _ => arg,
    };
    command.mut_args(of_scenario).mut_subcommands(with_names)
}

/// Writes completions for `shell` to `out`.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn std::io::Write) -> Result<()> {
    // By way of memory: the crate panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut with_names(command()), "steadfast", &mut text);
    Ok(out.write_all(&text)?)
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, WIDTH, command, completions, with_lines_kept, with_value_names};

    #[test]
    fn a_page_keeps_the_lines_of_examples() {
        let page = ".SH OPTIONS\nx\n.SH EXTRA\nExamples:\n  a b\n  c\n.SH VERSION\nv1\n";
        let kept = ".SH OPTIONS\nx\n.SH EXAMPLES\n.nf\n  a b\n  c\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(with_lines_kept(page), kept);
        assert_eq!(with_lines_kept(".SH OPTIONS\nx\n"), ".SH OPTIONS\nx\n");
        let last = ".SH EXTRA\nExit status: 0\n";
        assert_eq!(with_lines_kept(last), ".SH NOTES\n.nf\nExit status: 0\n.fi\n");
    }

    #[test]
    fn a_synopsis_names_the_values() {
        use clap::{Arg, Command};
        let arg = |id: &'static str| Arg::new(id).value_name("A-B");
        let options = [
            arg("long").long("two-words"),
            arg("short").short('s'),
            arg("both").short('b').long("both"),
            Arg::new("flag").long("flag").action(clap::ArgAction::SetTrue),
        ];
        let command = Command::new("x").args(options).disable_help_flag(true);
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut page).unwrap();
        let page = with_value_names(&String::from_utf8(page).unwrap(), &command);
        let line = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap();
        let value = "\\fI<A\\-B>\\fR]";
        for option in ["\\-\\-two\\-words", "\\-s", "\\-\\-both"] {
            assert!(line.contains(&format!("\\fB{option}\\fR {value}")), "{line}");
        }
        assert!(line.contains("[\\fB\\-\\-flag\\fR]"), "{line}");
    }

    /// Each command is in one of the groups.
    #[test]
    fn the_help_has_every_command_once() {
        let all = command();
        let names = all.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
        let mut names: Vec<&str> = names.filter(|name| *name != "help").chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, names);
        let help = command().render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        assert!(help.contains("Test a program under power cuts:\n  crash "), "{help}");
    }

    /// A shell offers the scenarios that come with the program.
    #[test]
    fn names_of_scenarios_are_completed() {
        for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Fish] {
            let mut out = Vec::new();
            completions(shell, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("nvram-journal"), "{shell}");
        }
    }

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
