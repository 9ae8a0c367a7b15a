//! What is said of images that others made, and with which exit status: good, damaged, used
//! wrongly, not supported.

// What is skipped is said aloud.
#![allow(clippy::print_stdout)]

mod encrypted;
mod image;
mod journals;
mod named;
mod odd;
mod orphans;
mod replayed;
mod statuses;
