//! `steadfast lab`: scenarios, their runs, their results.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The lab's commands.
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// List the scenarios that come with the program
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the device models and their parameters, each with its source
    #[command(after_help = "\
Examples:
  steadfast lab devices
  steadfast lab devices hdd
  steadfast lab devices --json | jq '.kinds[].kind'")]
    Devices {
        /// A kind, with its parameters
        #[arg(value_name = "KIND", conflicts_with = "format",
            value_parser = clap::builder::PossibleValuesParser::new(device_kinds()))]
        kind: Option<String>,
        /// All kinds with their parameters, for documents and programs
        #[arg(long, value_name = "FORMAT")]
        format: Option<ListFormat>,
        /// All kinds with their parameters as JSON, as with --format json
        #[arg(long, conflicts_with_all = ["kind", "format"])]
        json: bool,
    },
    /// List the keys of scenario files: what is required, what each means
    Keys {
        /// As a table of Markdown
        #[arg(long)]
        markdown: bool,
        /// Print as JSON
        #[arg(long, conflicts_with = "markdown")]
        json: bool,
    },
    /// Verify a scenario file without running it: all its mistakes, each with its line
    #[command(after_help = "\
Examples:
  steadfast lab check my-disk.toml

Exit status: 0 it can be run, 2 it is wrong.")]
    Check {
        /// A TOML file, of a scenario or a setup, or the name of a scenario
        scenario: String,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario and show speed and data at risk
    #[command(after_help = "\
Examples:
  steadfast lab run nvram-journal
  steadfast lab run nvram-journal --full --report report.html
  steadfast lab run nvram-journal --cuts 1000 --seed 7 --json result.json
  steadfast lab run my-disk.toml --real --destroy
  steadfast lab run my-setup.toml --json - | jq .summary")]
    Run(LabRun),
    /// Show results that `lab run --json` has written
    #[command(after_help = "\
Examples:
  steadfast lab run nvram-journal --seeds 8 --json result.json
  steadfast lab show result.json --wide
  steadfast lab show result.json --format markdown --table over")]
    Show(LabShow),
    /// Change each parameter of a scenario alone and show which figures move
    #[command(after_help = "\
Each number of the machine and the devices is changed by a third, down and up,
and each word to its alternatives, one at a time. A device that holds only
journals is also made ten times slower, and replaced by an SSD and by a second
disk; the drives of the scenario's band replace the disk. Figures are ratios: a
variant's speed over the first variant's.

Examples:
  steadfast lab sensitivity nvram-journal
  steadfast lab sensitivity nvram-journal --figure pwrite/external --svg t.svg
  steadfast lab sensitivity nvram-journal --only disk.drive
  steadfast lab sensitivity nvram-journal --size 64m --json - | jq .conclusions")]
    Sensitivity(LabSensitivity),
    /// List the drives that a band can name, with the sources of their figures
    Drives {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// How to ask what depends on what.
#[derive(Debug, Args)]
pub struct LabSensitivity {
    /// A scenario's name (see `lab list`) or its TOML file
    pub scenario: String,
    /// Run at the published size
    #[arg(long, conflicts_with = "size")]
    pub full: bool,
    /// Size of each file [default: the scenario's quick size]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Change only this part (`card`) or parameter (`disk.drive`)
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// The tornado's figure [default: the first]
    #[arg(long, value_name = "TEST/VARIANT")]
    pub figure: Option<String>,
    /// Write the results as JSON to FILE, or to the standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tornado chart as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ListFormat {
    /// Tables of Markdown
    Markdown,
    /// JSON
    Json,
}

fn device_kinds() -> Vec<&'static str> {
    steadfast_devices::model::KINDS.iter().map(|kind| kind.name).collect()
}

/// How to run a scenario.
#[derive(Debug, Args)]
pub struct LabRun {
    /// A scenario's name (see `lab list`) or its TOML file
    pub scenario: String,
    /// Run the workload at the published size
    #[arg(long)]
    pub full: bool,
    /// Power cuts for each variant; 0 for none
    #[arg(long, value_name = "N")]
    pub cuts: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Run with so many seeds, from --seed on; shows median and range of each figure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Also run the kernel's ext4, in real time, where the scenario has it (root)
    #[arg(long)]
    pub peers: bool,
    /// Measure in real time, one variant at a time, without cuts: for devices
    /// that have a path
    #[arg(long, conflicts_with_all = ["peers", "cuts", "record"])]
    pub real: bool,
    /// With --real: overwrite devices that have a path, whatever they hold
    #[arg(long, requires = "real")]
    pub destroy: bool,
    #[command(flatten)]
    pub looks: TableLooks,
    /// Write the results as JSON to FILE, or to the standard output with -
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an HTML report to FILE
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the speed chart as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
    /// Write recordings and a row for each cut to DIR, as JSON lines (docs/risk.md)
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

/// How the tables of a run are printed.
#[derive(Debug, Args)]
pub struct TableLooks {
    /// How the tables are printed
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    /// Print all columns
    #[arg(long)]
    pub wide: bool,
}

/// What to show of which results.
#[derive(Debug, Args)]
pub struct LabShow {
    /// A document that `lab run --json` has written
    pub file: PathBuf,
    #[command(flatten)]
    pub looks: TableLooks,
    /// Print the whole document, as with --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Only the table with the title TEXT, or else those whose title contains it; may be given
    /// several times
    #[arg(long = "table", value_name = "TEXT")]
    pub tables: Vec<String>,
    /// Only columns that are called NAME, or NAME and more after a comma; several times
    #[arg(long = "column", value_name = "NAME")]
    pub columns: Vec<String>,
    /// Write an HTML report to FILE
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the speed chart as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub chart: Option<PathBuf>,
}

/// How tables are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// For the terminal's width; 80 columns of ASCII where there is none
    Text,
    /// Markdown
    Markdown,
    /// A line for each figure: median, least, greatest
    Csv,
    /// The whole document, as --json -
    Json,
}
