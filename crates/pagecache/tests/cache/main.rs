//! The page cache against a store in memory.

mod edges;
mod errors;
mod memory;
mod model;
mod parts;
mod races;
mod read_ahead;
mod store;
mod write_back;
