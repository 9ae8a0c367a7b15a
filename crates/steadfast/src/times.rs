//! Times to give a file.

use std::time::{SystemTime, UNIX_EPOCH};

use steadfast_vfs::{SetAttr, SetTime, Timestamp};

/// Times to give a file, as [`std::fs::FileTimes`]: what is not set stays as it is.
///
/// ```
/// use std::time::SystemTime;
/// use steadfast::{FileTimes, Image};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// fs.write("/file", "")?;
/// let times = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH);
/// fs.set_times("/file", times)?;
/// assert_eq!(fs.metadata("/file")?.accessed(), SystemTime::UNIX_EPOCH);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct FileTimes {
    accessed: Option<SystemTime>,
    modified: Option<SystemTime>,
}

impl FileTimes {
    /// None.
    ///
    /// ```
    /// let times = steadfast::FileTimes::new();
    /// ```
    pub fn new() -> FileTimes {
        FileTimes::default()
    }

    pub(crate) fn to_set(self) -> SetAttr {
        let set = |time: Option<SystemTime>| time.map(|time| SetTime::At(timestamp(time)));
        SetAttr { atime: set(self.accessed), mtime: set(self.modified), ..SetAttr::default() }
    }

    /// The last time of reading.
    ///
    /// ```
    /// let times = steadfast::FileTimes::new().set_accessed(std::time::SystemTime::now());
    /// ```
    pub fn set_accessed(mut self, time: SystemTime) -> FileTimes {
        self.accessed = Some(time);
        self
    }

    /// The last change of the contents.
    ///
    /// ```
    /// let times = steadfast::FileTimes::new().set_modified(std::time::SystemTime::now());
    /// ```
    pub fn set_modified(mut self, time: SystemTime) -> FileTimes {
        self.modified = Some(time);
        self
    }
}

/// Seconds since 1970 and the nanoseconds after that second, before 1970 too.
fn timestamp(time: SystemTime) -> Timestamp {
    let seconds = |secs: u64| i64::try_from(secs).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timestamp { secs: seconds(after.as_secs()), nanos: after.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => Timestamp { secs: -seconds(before.as_secs()), nanos: 0 },
                n => Timestamp { secs: -seconds(before.as_secs()) - 1, nanos: 1_000_000_000 - n },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_before_1970_ends_later_than_it_begins() {
        let half = Duration::new(3, 500_000_000);
        assert_eq!(timestamp(UNIX_EPOCH + half), Timestamp { secs: 3, nanos: 500_000_000 });
        assert_eq!(timestamp(UNIX_EPOCH - half), Timestamp { secs: -4, nanos: 500_000_000 });
        let whole = Duration::from_secs(3);
        assert_eq!(timestamp(UNIX_EPOCH - whole), Timestamp { secs: -3, nanos: 0 });
    }
}
