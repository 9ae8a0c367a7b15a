//! The allocator of the program: jemalloc, which gives memory back that is free.
//!
//! A mount's buffers come and go in many threads and in all sizes. The C library keeps an arena a
//! thread, each as large as it ever was, and a mount of 96 MiB grew without end. The bound on a
//! mount's memory (docs/mount.md) holds with this allocator.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Few arenas for all threads, and a thread that soon gives free pages back. A C string, where
/// jemalloc looks for it.
#[allow(unsafe_code, reason = "jemalloc finds its settings by this name")]
#[unsafe(export_name = "_rjem_malloc_conf")]
static SETTINGS: &[u8; 69] =
    b"narenas:2,background_thread:true,dirty_decay_ms:250,muzzy_decay_ms:0\0";
