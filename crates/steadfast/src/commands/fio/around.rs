//! What a job file refers to on this machine: its environment, and files that it includes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use steadfast_bench::fio::{JobSurroundings, ReferenceError};
use steadfast_vfs::bounded;

/// This machine.
pub struct HostSurroundings;

impl JobSurroundings for HostSurroundings {
    /// As in fio, a variable that is not there is empty.
    fn variable(&self, name: &str) -> Result<String, ReferenceError> {
        match std::env::var(name) {
            Ok(value) => Ok(value),
            Err(std::env::VarError::NotPresent) => Ok(String::new()),
            Err(std::env::VarError::NotUnicode(_)) => Err(ReferenceError::NotText),
        }
    }

    /// From the folder of the file that includes it, or else from the current one.
    fn included(&self, name: &str, from: &str) -> Result<String, ReferenceError> {
        let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(name);
        let path = if beside.exists() { beside } else { name.into() };
        Ok(bounded::text(&path, bounded::SETTINGS_MAX)?)
    }

    /// From the current folder, as in fio.
    fn log(&self, name: &str) -> Result<Box<dyn BufRead>, ReferenceError> {
        let path = Path::new(name);
        if !path.metadata()?.is_file() {
            return Err(ReferenceError::NotHere("it is no regular file"));
        }
        Ok(Box::new(BufReader::new(File::open(path)?)))
    }

    fn keyword(&self, keyword: &str) -> Option<u64> {
        match keyword {
            "$pagesize" => Some(rustix::param::page_size() as u64),
            "$mb_memory" => {
                let system = rustix::system::sysinfo();
                Some((system.totalram * u64::from(system.mem_unit)) >> 20)
            }
            "$ncpus" => Some(std::thread::available_parallelism().map_or(1, usize::from) as u64),
            _ => None,
        }
    }
}
