//! The date of what is made: `SOURCE_DATE_EPOCH`, as reproducible-builds.org defines it, or now.

use std::time::SystemTime;

use steadfast_vfs::Timestamp;

use crate::Usage;

/// Says what the date is.
const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The date that was asked for, in seconds since 1970.
pub fn date() -> Result<Option<u64>, Usage> {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // What an inode can hold (2446).
    const LAST: u64 = (1 << 34) - (1 << 31) - 1;
    let date = text.to_str().and_then(|text| text.parse().ok()).filter(|date| *date <= LAST);
    match date {
        Some(date) => Ok(Some(date)),
        None => usage!("{VARIABLE}={}: seconds since 1970 are needed", text.display()),
    }
}

/// It as a time that no copy is later than.
pub fn newest() -> Result<Option<Timestamp>, Usage> {
    let secs = date()?.map(|date| i64::try_from(date).unwrap_or(i64::MAX));
    Ok(secs.map(|secs| Timestamp { secs, nanos: 0 }))
}

/// Seconds since 1970: the date that was asked for, or now.
pub fn seconds() -> u64 {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A date that is none was reported before anything was made.
    date().ok().flatten().unwrap_or_else(|| now().map_or(0, |since| since.as_secs()))
}
