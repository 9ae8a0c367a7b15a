//! A scenario in TOML: devices, file system, workload, variants; tables and reports out.
