//! `steadfast svm`: the command line, as far as it is ours. The words behind a command are taken
//! apart by crate `svm`: its grammar is not clap's.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands of the Solaris Volume Manager, for the volumes of a running host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast svm metainit d11 1 1 c0d1s0
  steadfast svm metainit d10 -m d11 && steadfast svm metattach d10 d12
  steadfast svm metaparam -r first d10
  steadfast svm link ~/bin     then: metastat -p d10

Names of slices (c0d1s0) are those of the host's configuration. `COMMAND -h`
prints a command's usage; docs/svm.md says what differs from Solaris.

Exit status of the commands: 0 good, 1 otherwise, as there; ramdiskadm 2 if
used wrongly.")]
pub struct Svm {
    /// The host's control socket [default: $STEADFAST_SOCKET, or the user's own host]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    #[command(subcommand)]
    pub command: SvmCommand,
}

/// What follows the command's name; -h, too, is the command's own.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Words {
    /// Options and operands, as Solaris has them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, num_args = 0.., value_name = "WORD")]
    pub words: Vec<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum SvmCommand {
    /// Make a concat, a stripe, or a mirror of one submirror
    Metainit(Words),
    /// Attach a submirror to a mirror, or grow the mirror
    Metattach(Words),
    /// Detach a submirror
    Metadetach(Words),
    /// Show or change how a mirror reads and writes, and its pass
    Metaparam(Words),
    /// Show volumes and their states
    Metastat(Words),
    /// Enable a component again, or put another one into its place
    Metareplace(Words),
    /// Start or stop a resync
    Metasync(Words),
    /// Clear volumes
    Metaclear(Words),
    /// Take a submirror offline
    Metaoffline(Words),
    /// Bring a submirror online
    Metaonline(Words),
    /// Hot spares of mirrors
    Metahs(Words),
    /// Show where the state of the volumes is kept
    Metadb(Words),
    /// Make, delete and list RAM disks
    Ramdiskadm(Words),
    /// Make links by whose names the commands can be called
    #[command(after_help = "\
Example:
  steadfast svm link ~/bin && metastat

Links that are there already stay; anything else of these names is refused, and
nothing is made then.")]
    Link {
        /// The folder for the links
        folder: PathBuf,
    },
}

impl SvmCommand {
    /// The name of a command of Solaris, and the words behind it.
    pub fn called(&self) -> Option<(&'static str, &[String])> {
        let (name, words) = match self {
            SvmCommand::Metainit(words) => ("metainit", words),
            SvmCommand::Metattach(words) => ("metattach", words),
            SvmCommand::Metadetach(words) => ("metadetach", words),
            SvmCommand::Metaparam(words) => ("metaparam", words),
            SvmCommand::Metastat(words) => ("metastat", words),
            SvmCommand::Metareplace(words) => ("metareplace", words),
            SvmCommand::Metasync(words) => ("metasync", words),
            SvmCommand::Metaclear(words) => ("metaclear", words),
            SvmCommand::Metaoffline(words) => ("metaoffline", words),
            SvmCommand::Metaonline(words) => ("metaonline", words),
            SvmCommand::Metahs(words) => ("metahs", words),
            SvmCommand::Metadb(words) => ("metadb", words),
            SvmCommand::Ramdiskadm(words) => ("ramdiskadm", words),
            SvmCommand::Link { .. } => return None,
        };
        Some((name, &words.words))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        svm: super::Svm,
    }

    #[test]
    fn every_command_of_the_crate_can_be_called() {
        for name in steadfast_svm::NAMES {
            let only = Only::try_parse_from(["steadfast", name, "-h", "--", "-x"]).unwrap();
            let (called, words) = only.svm.command.called().unwrap();
            assert_eq!((called, words[0].as_str()), (name, "-h"));
        }
        let ours = Only::command().get_subcommands().count();
        assert_eq!(ours, steadfast_svm::NAMES.len() + 1);
    }
}
