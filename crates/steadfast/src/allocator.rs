//! What the process does with memory that is free.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use glibc::{give_back, set_up};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: glibc::GlibcAllocator = glibc::GlibcAllocator;

/// Other C libraries give memory back by themselves, or have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn set_up() {}

/// See there.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back(_cache: u64) {}
