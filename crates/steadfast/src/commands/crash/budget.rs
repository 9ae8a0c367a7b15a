//! A budget of time for the exploration, the clock that it runs by, and times of options.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::Usage;

/// How long states and models may be explored.
#[derive(Debug, Clone)]
pub struct Budget {
    text: String,
    time: Duration,
}

/// No time.
#[derive(Debug, thiserror::Error)]
#[error("a time with its unit is needed, more than none: 90s, 5m, 1h30m")]
pub struct BudgetError;

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Budget, BudgetError> {
        let time: jiff::SignedDuration = text.parse().map_err(|_| BudgetError)?;
        let time = Duration::try_from(time).map_err(|_| BudgetError)?;
        match time.is_zero() {
            true => Err(BudgetError),
            false => Ok(Budget { text: text.to_owned(), time }),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A budget that is being spent.
#[derive(Debug, Clone, Copy)]
pub struct Spending {
    begun: Instant,
    time: Duration,
}

impl Budget {
    /// One of so many equal parts of it.
    pub fn part_of(&self, parts: usize) -> Budget {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
        Budget { text: self.text.clone(), time: self.time / parts }
    }

    /// From now on.
    pub fn begin(&self) -> Spending {
        Spending { begun: Instant::now(), time: self.time }
    }
}

impl Spending {
    /// The share of it that is spent, 1 at its end.
    pub fn share(self) -> f64 {
        (self.begun.elapsed().as_secs_f64() / self.time.as_secs_f64()).min(1.0)
    }
}

/// A time of the command line: up to a day.
pub fn seconds(option: &str, value: f64) -> Result<Duration, Usage> {
    match Duration::try_from_secs_f64(value) {
        Ok(time) if time <= Duration::from_secs(86_400) => Ok(time),
        _ => Err(Usage(format!("{option} {value}: seconds are needed, from 0 to 86400"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        for (text, seconds) in [("90s", 90), ("5m", 300), ("1h", 3600), ("1h30m", 5400)] {
            let budget: Budget = text.parse().unwrap();
            assert_eq!((budget.time.as_secs(), budget.to_string()), (seconds, text.into()));
        }
        for wrong in ["", "90", "0s", "-5m", "5x", "m", "forever", "1e400s"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
    }
}
