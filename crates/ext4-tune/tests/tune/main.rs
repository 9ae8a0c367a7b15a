//! Journals attached, detached and moved; with the power cut in the middle of it.

mod cuts;
mod home_mark;
mod losses;
mod machine;
mod words;
