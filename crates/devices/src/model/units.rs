//! Values of parameters as the integers that models compute with.

/// Milliseconds as nanoseconds.
pub(super) fn ms(value: f64) -> u64 {
    (value * 1e6).round() as u64
}

/// Microseconds as nanoseconds.
pub(super) fn us(value: f64) -> u64 {
    (value * 1e3).round() as u64
}

/// Nanoseconds that `bytes` take at a rate of decimal megabytes a second.
pub(super) fn transfer_ns(bytes: u64, mb_per_s: f64) -> u64 {
    (bytes as f64 * (1e3 / mb_per_s)).round() as u64
}

/// KiB as bytes.
pub(super) fn kib(value: u32) -> u64 {
    u64::from(value) << 10
}

/// MiB as bytes.
pub(super) fn mib(value: u32) -> u64 {
    u64::from(value) << 20
}

/// Sectors as bytes; at most as many as can be counted, which is too many for any device.
pub(super) fn sectors(number: u64) -> u64 {
    number.saturating_mul(512)
}
