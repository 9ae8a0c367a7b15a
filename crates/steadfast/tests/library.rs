//! The library as others use it: what it writes is what e2fsprogs and the kernel read, wrong paths
//! are errors, trees are copied whole and nowhere else, programs on a mount are judged after power
//! cuts, and a project of its own builds the program of the crate page.

// What is skipped is printed.
#![allow(clippy::print_stdout)]

#[path = "library/at_folder.rs"]
mod at_folder;
#[path = "library/examples_of_items.rs"]
mod examples_of_items;
#[path = "library/fresh.rs"]
mod fresh;
#[path = "library/hostile.rs"]
mod hostile;
#[path = "library/mounted.rs"]
mod mounted;
#[path = "library/paths.rs"]
mod paths;
#[path = "library/power_cuts.rs"]
mod power_cuts;
#[path = "library/space.rs"]
mod space;
#[path = "library/trees.rs"]
mod trees;
#[path = "library/verdicts.rs"]
mod verdicts;
