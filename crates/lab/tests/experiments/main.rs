//! Experiments at a small size, scenarios with mistakes, and what is written of results. One
//! program: each by itself would be linked with the whole lab.

mod answers;
mod band;
mod controls;
mod copies;
mod data_at_risk;
mod fio;
mod golden;
mod kernel_peers;
mod matrix;
mod memory;
mod nvdimm;
mod own_size;
mod peers;
mod pinned;
mod planted;
mod reads;
mod report;
mod scenario_files;
mod schedulers;
mod schema;
mod volumes;
