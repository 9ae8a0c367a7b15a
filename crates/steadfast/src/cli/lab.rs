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
    /// Print a scenario that comes with the program: a good start for your own
    #[command(after_help = "\
Examples:
  steadfast lab scenario nvram-journal > mine.toml
  steadfast lab check mine.toml && steadfast lab run mine.toml
  steadfast lab scenario --presets > devices.toml

docs/lab.md describes every key, and lab keys lists them.")]
    Scenario {
        /// Its name (see `lab list`)
        #[arg(required_unless_present = "presets")]
        scenario: Option<String>,
        /// Print the presets of common devices: what `preset = \"nvme\"` stands for
        #[arg(long, conflicts_with = "scenario")]
        presets: bool,
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
        /// As a list of Markdown
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
    /// Run a scenario: what was found of speed and data loss, in a few sentences and a table
    #[command(after_help = "\
Examples:
  steadfast lab run nvram-journal
  steadfast lab run nvram-journal --full --report report.html
  steadfast lab run nvram-journal --band --cuts 0
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
disk; what the scenario's band leaves unknown takes each other value. Figures
are ratios: a variant's speed over the first variant's.

Examples:
  steadfast lab sensitivity nvram-journal
  steadfast lab sensitivity nvram-journal --figure pwrite/external --svg t.svg
  steadfast lab sensitivity nvram-journal --only disk.drive
  steadfast lab sensitivity nvram-journal --size 64m --json - | jq .conclusions")]
    Sensitivity(LabSensitivity),
    /// Compare the models with real devices: traces of drives, published figures of parts
    #[command(after_help = "\
A drive is DiskSim's NAME.parv with the files that it names, or a NAME.toml with
the keys of a device (kind = \"hdd\"), and NAME.trace beside it; each may end
with .zst. A folder stands for all drives in it. A trace has a request a line: R
or W, a word, first sector, sectors, us that the drive took, us until the next.

A part is a TOML file with a device ([device], as in a scenario) and figures
from its data sheet or from somebody's measurements ([[figure]]:
docs/validation.md). Without FILE --parts takes those that come with the
program.

Examples:
  steadfast lab validate --drive traces/
  steadfast lab validate --drive traces/cheetah9LP.parv --svg curves.svg
  steadfast lab validate --drive cheetah9LP.parv --save-device cheetah9LP.toml
  steadfast lab validate --drive traces/ --json | jq '.drives[].demerit_ms'
  steadfast lab validate --parts
  steadfast lab validate --parts my-ssd.toml --json | jq '.parts[].figures'

Exit status: 0 good; 1 a drive's times are farther off than DiskSim's, whose
figure is published; 2 used wrongly.")]
    Validate(LabValidate),
    /// Measure a device of this machine, and make a model of it for scenarios
    #[command(after_help = "\
Examples:
  sudo steadfast lab calibrate /dev/sdb -o mine.toml
  steadfast lab calibrate /var/tmp --write -o mine.toml
  sudo steadfast lab calibrate /dev/sdb --write --destroy -o mine.toml
  steadfast lab calibrate big-file.img --json | jq .validation
  steadfast crash run --stack mine.toml -- ./program

Takes about two minutes. Without --write it only reads, and nothing of writes
and flushes is known. In a folder --write makes a file of its own, which goes
again. The page cache is bypassed. What is in use is refused. A mix of requests
that the model was not fitted to is run on the device and on the model: the
demerit figure (rms of the horizontal distance of the two distributions of
times) says how far the model is to be trusted.

Exit status: 0 there is a model, 1 the device failed or is too noisy, 2 used
wrongly.")]
    Calibrate(LabCalibrate),
    /// Compare what a recorded program gains and loses on twenty stacks
    #[command(after_help = "\
Examples:
  steadfast trace record -o app.trace -- ./my-program
  steadfast lab compare --trace app.trace
  steadfast lab compare --trace app.trace --only disk-7200,disk-7200-nvram
  steadfast lab compare --trace app.trace --report page.html
  steadfast lab compare --trace app.trace --check .
  steadfast lab compare --catalogue > my-stacks.toml
  steadfast lab compare --trace app.trace --stacks my-stacks.toml --json -
  steadfast lab compare --trace app.trace --stacks priced.toml --budget 500

The calls of the trace are made again on each stack, a model in virtual time,
and the power is cut in each run. A catalogue is a scenario file without a
[workload]; the first stack that is run is what the others are compared with.
Places are ranges where runs with several seeds overlap, or are less than 10 %
apart. Of a trace that was cut off what is there is taken, and the output says
so. Half of the cuts are spread over the time, pauses too, half over what
happened, the last one is at the program's end; more --cuts find more.

Exit status: 0 good, 1 a stack could not be run, 2 used wrongly.")]
    Compare(LabCompare),
    /// List the drives that a band can name, with the sources of their figures
    Drives {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// What to compare.
#[derive(Debug, Args)]
pub struct LabCompare {
    /// The trace (steadfast trace record)
    #[arg(long, value_name = "FILE", required_unless_present = "catalogue")]
    pub trace: Option<PathBuf>,
    /// Print the program's catalogue of stacks, to be changed and given as --stacks
    #[arg(long, exclusive = true)]
    pub catalogue: bool,
    /// A catalogue of stacks [default: the program's]
    #[arg(long, value_name = "FILE")]
    pub stacks: Option<PathBuf>,
    /// Only these stacks
    #[arg(long, value_name = "STACK", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only stacks that the catalogue gives a price of at most this
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub budget: Option<f64>,
    /// The program does not think: each call is made as soon as those before it allow
    #[arg(long)]
    pub flat_out: bool,
    /// Runs with so many seeds, for the ranges; the first is cut
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Power cuts of each stack [default: 10]
    #[arg(long)]
    pub cuts: Option<u64>,
    /// Also replay it below a folder of this machine, and say how far that is from the recording
    #[arg(long, value_name = "DIR")]
    pub check: Option<PathBuf>,
    /// Print all stacks with all figures, and the notes
    #[arg(long)]
    pub wide: bool,
    /// Write a page for a browser
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the comparison as JSON to FILE, or to the standard output (-)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "a price is a number from 0 on".to_owned())
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

/// Which drives or parts to compare with their models.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub struct LabValidate {
    /// A drive's parameters, or a folder of drives; several times for several
    #[arg(long, value_name = "PATH", group = "what")]
    pub drive: Vec<PathBuf>,
    /// Compare the published figures of parts with their models
    #[arg(long, value_name = "FILE", num_args = 0.., group = "what")]
    pub parts: Option<Vec<PathBuf>>,
    /// Write the parameters of the drive, of which there must be one, as TOML to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "parts")]
    pub save_device: Option<PathBuf>,
    /// Write the curves of all drives as SVG to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "parts")]
    pub svg: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to calibrate.
#[derive(Debug, Args)]
pub struct LabCalibrate {
    /// A block device, a file, or with --write a folder
    #[arg(value_name = "DEVICE|FILE|DIR")]
    pub path: PathBuf,
    /// Write the device to FILE, as TOML for scenarios and for --stack
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write, too: to a file of its own in DIR, or with --destroy to what is named
    #[arg(long)]
    pub write: bool,
    /// With --write: overwrite the device or file, whatever it holds
    #[arg(long, requires = "write")]
    pub destroy: bool,
    /// About how long it takes at the most; fewer seconds: fewer repetitions
    #[arg(long, value_name = "N", default_value_t = steadfast_lab::calibrate::USUAL_SECONDS,
        value_parser = seconds)]
    pub seconds: f64,
    /// Seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|e| e.to_string())?;
    let allowed = (10.0..=3600.0).contains(&seconds);
    allowed.then_some(seconds).ok_or_else(|| "it must be from 10 to 3600".into())
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
    /// Also measure every combination of what the source leaves unknown, and show
    /// each published figure beside the range
    #[arg(long)]
    pub band: bool,
    /// Measure in real time, one variant at a time, without cuts: for devices
    /// that have a path
    #[arg(long, conflicts_with_all = ["peers", "cuts", "record", "band"])]
    pub real: bool,
    /// With --real: overwrite devices that have a path, whatever they hold
    #[arg(long, requires = "real")]
    pub destroy: bool,
    #[command(flatten)]
    pub output: RunOutput,
    /// Write recordings and a row for each cut to DIR, as JSON lines (docs/risk.md)
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

/// How results of a run are shown, and where they are written.
#[derive(Debug, Args)]
pub struct RunOutput {
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
}

/// How the tables of a run are printed.
#[derive(Debug, Args)]
pub struct TableLooks {
    /// How the tables are printed
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    /// Print all tables with all columns, the notes, and what was found of each variant
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
