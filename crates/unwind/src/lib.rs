//! Where in a program a call is made, while the file system that is asked has not answered yet.
//!
//! The thread that has made the call waits in the kernel. A [`Tracer`] seizes it there and has it
//! stop where it comes back to the program (ptrace(2)): its registers are whole then. Its stack is
//! unwound from its memory, and it goes on. It is not stopped anywhere else: a call that waits for
//! something else than this file system is never interrupted.
//!
//! # Invariants
//!
//! 1. The program never waits for what may not come: who is not seized in time is left alone, and a
//!    tracing thread that ends lets go of what it holds.
//! 2. No end of a process is taken from who waits for it: one of our own children is left to its
//!    waiter, others are handed on to theirs by the kernel.
//! 3. Memory is bounded: frames of a stack, different stacks, and threads that trace.
//!
//! Addresses are kept by file and place in it. They get their names at the end of the run, while
//! the files are still open: a program that is started a thousand times is read once.

mod held;
mod image;
mod module;
mod names;
mod stacks;
mod tracer;

pub use tracer::{NoStack, Tracer};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
