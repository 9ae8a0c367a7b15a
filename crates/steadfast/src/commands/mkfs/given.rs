//! The options that ext4's table of mkfs options names, as the command line gives them.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use steadfast_ext4_mkfs::Options;
use steadfast_ext4_mkfs::option_table::{MkfsOption, MkfsOptionError, OPTIONS};

use crate::{Unsupported, Usage};

/// Options and their values, in the table's order.
#[derive(Debug, Clone, Default)]
pub struct GivenOptions(Vec<(&'static str, String)>);

impl GivenOptions {
    /// All values of an option.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    /// Puts the values of one option in.
    pub fn apply_one(&self, name: &str, options: &mut Options) -> anyhow::Result<()> {
        let Some(option) = OPTIONS.iter().find(|o| o.name == name) else { return Ok(()) };
        for value in self.all(name) {
            option.apply(options, value).map_err(|e| match e {
                MkfsOptionError::Wrong(what) => anyhow::Error::new(Usage(what)),
                MkfsOptionError::Unsupported(what) => anyhow::Error::new(Unsupported(what)),
            })?;
        }
        Ok(())
    }

    /// Puts all in.
    pub fn apply(&self, options: &mut Options) -> anyhow::Result<()> {
        OPTIONS.iter().try_for_each(|option| self.apply_one(option.name, options))
    }
}

fn arg(option: &'static MkfsOption) -> Arg {
    let tried = move |text: &str| match (option.set)(&mut Options::random(0), text) {
        // What is not supported is reported later, with an exit status of its own.
        Ok(()) | Err(MkfsOptionError::Unsupported(_)) => Ok(text.to_owned()),
        Err(MkfsOptionError::Wrong(what)) => Err(what),
    };
    let parser = match option.words {
        [] => ValueParser::from(tried),
        words => PossibleValuesParser::new(words.iter().copied()).into(),
    };
    Arg::new(option.name)
        .short(option.name.chars().next())
        .value_name(option.shown)
        .help(option.help)
        .value_parser(parser)
        // So that what is wrong with one is said by the option.
        .allow_negative_numbers(true)
        // As getopt: of several the last stands; features add up.
        .action(if option.name == "O" { ArgAction::Append } else { ArgAction::Set })
}

impl Args for GivenOptions {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, option| command.arg(arg(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        GivenOptions::augment_args(command)
    }
}

impl FromArgMatches for GivenOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = GivenOptions::default();
        given.update_from_arg_matches(matches).map(|()| given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for option in OPTIONS {
            let values = matches.get_many::<String>(option.name).into_iter().flatten();
            self.0.extend(values.map(|value| (option.name, value.clone())));
        }
        Ok(())
    }
}
