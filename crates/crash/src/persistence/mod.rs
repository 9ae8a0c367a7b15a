//! What a power cut may leave of a program's calls, by models of what file systems promise: made of
//! the calls themselves, without a file system, a disk or a mount.
//!
//! A cut of one file system's recorded writes ([`explore`](crate::program::explore)) says what that
//! file system leaves. Another one, or the same one mounted otherwise, may leave more. Here each
//! call is a few [`Step`]s, each of which is there after the cut or not: a piece of data, a size, a
//! name. What was synced is there; a [`Model`] says which steps come in which order; beyond that
//! any of them may be missing (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014,
//! call this an abstract persistence model).
//!
//! * [`steps`] takes calls apart, `world` puts those that survive together to a tree;
//! * [`model`] is the order, [`states`] chooses what survives;
//! * [`state`] is one of them again;
//! * [`explore`] judges it, [`explain`] says which calls it comes from and what would help.

pub mod explain;
pub mod explore;
pub mod model;
pub mod state;
pub mod states;
pub mod steps;
mod world;

pub use explore::{ModelFinding, ModelReport};
pub use model::Model;
pub use steps::{Effect, Step, Steps};
