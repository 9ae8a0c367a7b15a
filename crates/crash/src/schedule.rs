//! Schedules of tasks that work side by side.

use std::fmt;
use std::str::FromStr;

use crate::error::{CrashError, Result};

/// One schedule, in words `begins=0 points=2,5`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    /// The task that is started first; the others follow in their order.
    pub begins: usize,
    /// The points at which the running task is preempted, by their numbers.
    pub points: Vec<u64>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "begins={}", self.begins)?;
        if !self.points.is_empty() {
            let points: Vec<String> = self.points.iter().map(u64::to_string).collect();
            write!(f, " points={}", points.join(","))?;
        }
        Ok(())
    }
}

impl Schedule {
    /// Takes a word; false if it is none of a schedule.
    ///
    /// # Errors
    /// A number in it is none.
    pub fn take(&mut self, word: &str) -> Result<bool> {
        let number = |text: &str| {
            let why = || CrashError::Words(format!("{word}: '{text}' is not a whole number"));
            text.parse::<u64>().map_err(|_| why())
        };
        match word.split_once('=') {
            Some(("begins", task)) => self.begins = number(task)? as usize,
            Some(("points", points)) => {
                self.points = points.split(',').map(number).collect::<Result<_>>()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl FromStr for Schedule {
    type Err = CrashError;

    fn from_str(words: &str) -> Result<Schedule> {
        let mut schedule = Schedule::default();
        for word in words.split_whitespace() {
            if !schedule.take(word)? {
                return Err(CrashError::Words(format!("{word}: not a word of a schedule")));
            }
        }
        Ok(schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_as_it_is_written() {
        for words in ["begins=0", "begins=2 points=0,7"] {
            assert_eq!(words.parse::<Schedule>().unwrap().to_string(), words);
        }
        for wrong in ["points=", "begins=x", "pints=1", "1"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }
}
