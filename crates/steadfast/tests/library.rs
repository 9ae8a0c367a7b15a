//! The library as others use it: what it writes is what e2fsprogs and the kernel read, wrong paths
//! are errors, and a project of its own builds the program of the crate page.

// What is skipped is told.
#![allow(clippy::print_stdout)]

#[path = "library/fresh.rs"]
mod fresh;
#[path = "library/mounted.rs"]
mod mounted;
#[path = "library/paths.rs"]
mod paths;
#[path = "library/verdicts.rs"]
mod verdicts;
