//! A scenario in TOML: devices, file system, workload, variants; tables and reports out.

pub mod report;
pub mod results;
pub mod table;
