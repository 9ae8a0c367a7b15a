//! Checking parameters and turning them into the integers that models compute with.

use std::fmt::Display;

use super::ModelError;

/// Checks the parameters of one model.
pub(super) struct ParameterChecker(pub &'static str);

impl ParameterChecker {
    pub(super) fn refuse(
        &self,
        name: &'static str,
        value: impl Display,
        why: impl Into<String>,
    ) -> ModelError {
        ModelError::Parameter { model: self.0, name, value: value.to_string(), why: why.into() }
    }

    /// A whole number within `[low, high]`.
    pub(super) fn count(
        &self,
        name: &'static str,
        value: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, ModelError> {
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(self.refuse(name, value, format!("must be between {low} and {high}")))
    }

    fn real(&self, name: &'static str, value: f64, low: f64, high: f64) -> Result<f64, ModelError> {
        if value.is_finite() && (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(self.refuse(name, value, format!("must be between {low} and {high}")))
    }

    /// Milliseconds (up to a minute) as nanoseconds.
    pub(super) fn ms(&self, name: &'static str, value: f64) -> Result<u64, ModelError> {
        Ok((self.real(name, value, 0.0, 60_000.0)? * 1e6).round() as u64)
    }

    /// Microseconds (up to a minute) as nanoseconds.
    pub(super) fn us(&self, name: &'static str, value: f64) -> Result<u64, ModelError> {
        Ok((self.real(name, value, 0.0, 60e6)? * 1e3).round() as u64)
    }

    /// A rate in MB/s.
    pub(super) fn rate(&self, name: &'static str, mb_per_s: f64) -> Result<ByteRate, ModelError> {
        Ok(ByteRate { ns_per_byte: 1e3 / self.real(name, mb_per_s, 0.001, 1e6)? })
    }

    /// A share between 0 and `high`.
    pub(super) fn share(
        &self,
        name: &'static str,
        value: f64,
        high: f64,
    ) -> Result<f64, ModelError> {
        self.real(name, value, 0.0, high)
    }
}

/// How fast bytes move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ByteRate {
    ns_per_byte: f64,
}

impl ByteRate {
    /// Nanoseconds that `bytes` take.
    pub(super) fn time(self, bytes: u64) -> u64 {
        (bytes as f64 * self.ns_per_byte).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal() {
        let rate = ParameterChecker("hdd").rate("interface_mb_per_s", 300.0).unwrap();
        assert_eq!(rate.time(300_000_000), 1_000_000_000);
    }

    #[test]
    fn nonsense_is_named() {
        let c = ParameterChecker("hdd");
        let e = c.ms("track_skew_ms", f64::NAN).unwrap_err().to_string();
        assert_eq!(e, "hdd parameter track_skew_ms = NaN: must be between 0 and 60000");
        assert!(c.rate("interface_mb_per_s", 0.0).is_err());
        assert!(c.us("command_us", -1.0).is_err());
        assert!(c.count("heads", 0, 1, 64).is_err());
    }
}
