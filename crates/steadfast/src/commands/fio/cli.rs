//! The command line of `steadfast fio`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::commands::site::SiteArgs;

/// Runs fio's job files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast fio job.fio
  steadfast fio job.fio --folder /mnt/disk
  steadfast fio job.fio --output-format json --output out.json
  steadfast fio job.fio --stack nvram-journal --variant internal
  steadfast fio --cmdhelp all

Files are in the current folder, and none outside of it is touched. With
--folder, --image and --stack a path that begins with / begins there. Files stay
when the run has ended, as with fio, unless unlink=1. Only files are read and
written, never devices.
Every option of a job file that is not supported is named with its line.

Exit status: 0 good, 1 a job failed or read wrong data, 2 used wrongly,
3 a job file has options that are not supported.")]
pub struct Fio {
    /// Job files: all their jobs are one run
    #[arg(value_name = "JOB.fio", required_unless_present = "cmdhelp")]
    pub jobs: Vec<PathBuf>,
    /// Run only this section; may be given several times
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,
    /// Form of the results
    #[arg(long, value_name = "FORM", value_enum, default_value_t = FioForm::Normal)]
    pub output_format: FioForm,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Folder of this machine that all files are in; absolute paths begin there
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["image", "stack"])]
    pub folder: Option<PathBuf>,
    /// Show what an option of job files takes; `all` lists them
    #[arg(long, value_name = "OPTION", conflicts_with = "jobs")]
    pub cmdhelp: Option<String>,
    #[command(flatten)]
    pub site: SiteArgs,
}

/// Forms of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FioForm {
    /// Text for people
    Normal,
    /// fio's JSON
    Json,
    /// fio's terse line, version 3
    Terse,
}
