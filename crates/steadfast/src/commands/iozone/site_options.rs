//! The options that are not IOzone's, among those that are.

use anyhow::Result;
use clap::{Args, Command, FromArgMatches};

use crate::Usage;
use crate::commands::site::SiteArgs;

/// Where the files are, and how the figures are printed.
#[derive(Debug, Args)]
pub struct OwnArgs {
    #[command(flatten)]
    pub site: SiteArgs,
    /// IOzone's own layout also on a terminal
    #[arg(long)]
    pub wide: bool,
}

/// Takes them out; the other words are IOzone's.
pub fn taken_out(words: &[String]) -> Result<(OwnArgs, Vec<String>)> {
    let command = OwnArgs::augment_args(Command::new("iozone").no_binary_name(true));
    let flag = |name: &str| {
        let arg = command.get_arguments().find(|a| a.get_long() == Some(name))?;
        Some(arg.get_action().takes_values())
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut words = words.iter().cloned();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").map(|w| w.split('=').next().unwrap_or(w).to_owned());
        match name.and_then(|name| flag(&name)) {
            None => theirs.push(word),
            Some(takes_value) => {
                let glued = word.contains('=');
                ours.push(word);
                if takes_value && !glued {
                    ours.extend(words.next());
                }
            }
        }
    }
    let wrong = |e: clap::Error| {
        let text = e.to_string();
        let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Usage(format!("iozone: {line}"))
    };
    let matches = command.try_get_matches_from(ours).map_err(wrong)?;
    Ok((OwnArgs::from_arg_matches(&matches).map_err(wrong)?, theirs))
}
