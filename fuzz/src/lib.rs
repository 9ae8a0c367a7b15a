//! What the fuzz targets share. The targets are the files of `fuzz_targets`: each is a function of
//! bytes, and a program of libFuzzer's if the feature `libfuzzer` is on. `tests/seeds.rs` runs the
//! functions on the inputs that are kept.

pub mod image;
pub mod input;
pub mod usage;

use std::alloc::System;

use cap::Cap;

/// Most bytes that a target may have allocated at a time: a decoder that believes a length of its
/// input ends in an abort.
const MEMORY_MAX: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY_MAX);

/// Makes a function a target of libFuzzer.
#[macro_export]
macro_rules! target {
    ($function:path) => {
        #[cfg(feature = "libfuzzer")]
        libfuzzer_sys::fuzz_target!(|input: &[u8]| $function(input));
    };
}

/// The checksum of the structures of persistent memory (kernel: `nd_fletcher64`).
pub fn fletcher64(bytes: &[u8]) -> u64 {
    let (mut low, mut high) = (0u32, 0u32);
    for word in bytes.chunks_exact(4) {
        low = low.wrapping_add(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        high = high.wrapping_add(low);
    }
    u64::from(high) << 32 | u64::from(low)
}
