//! Plans, shards and merges, with cases that are numbers: what is honest is merged, what is killed
//! is resumed, and lies are refused.

mod common;
mod lies;
mod many;
mod resume;
