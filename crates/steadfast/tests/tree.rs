//! `get`, `put`, `rm` and `ls` on trees: what is kept, and what images that are damaged or made to
//! do harm can do. Owners and devices need root: without it those tests say SKIPPED.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

#[path = "tree/archives.rs"]
mod archives;
#[path = "tree/bombs.rs"]
mod bombs;
#[path = "tree/cycles.rs"]
mod cycles;
#[path = "tree/desk.rs"]
mod desk;
#[path = "tree/escape.rs"]
mod escape;
#[path = "tree/failures.rs"]
mod failures;
#[path = "tree/kept.rs"]
mod kept;
#[path = "tree/large.rs"]
mod large;
#[path = "tree/owners.rs"]
mod owners;
