//! A scenario in TOML: devices, file system, workload, variants; tables and reports out.

mod error;
pub mod report;
pub mod results;
pub mod scenario;
pub mod table;

pub use error::LabError;
