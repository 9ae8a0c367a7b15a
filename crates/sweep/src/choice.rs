//! Which shard a process runs: from its option, or from the environment of the engine.
//!
//! Only the number is taken from there, never how many there are: `sbatch --array=3,5` says that
//! its array has two tasks.

use std::fs::OpenOptions;
use std::path::Path;

use crate::SweepError;

/// Environment variables that say which of many tasks this one is, and the number of their first.
pub const SHARD_VARIABLES: [(&str, u32); 6] = [
    ("SLURM_ARRAY_TASK_ID", 0),
    ("JOB_COMPLETION_INDEX", 0),
    ("HQ_TASK_ID", 0),
    ("PARALLEL_SEQ", 1),
    ("CI_NODE_INDEX", 1),
    (TEST_SHARD, 0),
];

/// Bazel's; it wants to know that the test knows of shards.
const TEST_SHARD: &str = "TEST_SHARD_INDEX";
const TEST_SHARD_STATUS: &str = "TEST_SHARD_STATUS_FILE";

/// The shard that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenShard {
    /// From 0.
    pub shard: u32,
    /// What said so: `--shard`, or a variable's name.
    pub said_by: String,
    /// A file to be made, for whoever wants to know that shards are known here.
    pub status_file: Option<String>,
}

impl ChosenShard {
    /// Makes the [file](Self::status_file) that somebody wants to see.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn touch_status_file(&self) -> Result<(), SweepError> {
        let Some(file) = self.status_file.as_deref().map(Path::new) else { return Ok(()) };
        let touched = OpenOptions::new().create(true).append(true).open(file);
        touched.map(drop).map_err(|e| SweepError::io(file, e))
    }
}

/// Why no shard could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Nothing says it.
    #[error(
        "the plan has {shards} shards, and nothing says which one to run: give --shard K (0 to \
         {}), or run it by an engine that sets one of {}", shards - 1, names()
    )]
    Unsaid {
        /// The plan's.
        shards: u32,
    },
    /// A variable is no number.
    #[error("{name}={value}: it must be a number from {first} on; unset it to choose by --shard")]
    NoNumber {
        /// The variable.
        name: String,
        /// What it says.
        value: String,
        /// The least that it can be.
        first: u32,
    },
    /// Two say something else.
    #[error(
        "{} says shard {}, {} says shard {}: which one is meant? Unset the variable that another \
         program has left, or give the same number", both[0].0, both[0].1, both[1].0, both[1].1
    )]
    Disagreeing {
        /// What says which.
        both: Box<[(String, u32); 2]>,
    },
    /// There is no such shard.
    #[error("{said_by} says shard {shard}: the plan has {shards}, from 0 to {}", shards - 1)]
    TooLarge {
        /// What says so.
        said_by: String,
        /// The number.
        shard: u32,
        /// The plan's.
        shards: u32,
    },
}

fn names() -> String {
    SHARD_VARIABLES.map(|(name, _)| name).join(", ")
}

/// The shard of a plan with so many that this process runs; `option`: what `--shard` says.
/// Variables that are empty say nothing. Of one shard nothing has to be said.
///
/// # Errors
/// Nothing says it, or not one number of the plan's.
pub fn chosen_shard(
    shards: u32,
    option: Option<u32>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ChosenShard, ChoiceError> {
    let mut said: Vec<(String, u32)> = Vec::new();
    said.extend(option.map(|shard| ("--shard".to_owned(), shard)));
    for (name, first) in SHARD_VARIABLES {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        let number = value.parse::<u32>().ok().and_then(|number| number.checked_sub(first));
        let name = name.to_owned();
        match number {
            Some(shard) => said.push((name, shard)),
            None => return Err(ChoiceError::NoNumber { name, value, first }),
        }
    }
    let status_file = variable(TEST_SHARD_STATUS).filter(|file| !file.is_empty());
    let Some((said_by, shard)) = said.first().cloned() else {
        return match shards {
            1 => Ok(ChosenShard { shard: 0, said_by: "the plan".into(), status_file }),
            shards => Err(ChoiceError::Unsaid { shards }),
        };
    };
    if let Some(other) = said.iter().find(|(_, other)| *other != shard) {
        let both = Box::new([(said_by, shard), other.clone()]);
        return Err(ChoiceError::Disagreeing { both });
    }
    match shard < shards {
        true => Ok(ChosenShard { shard, said_by, status_file }),
        false => Err(ChoiceError::TooLarge { said_by, shard, shards }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        shards: u32,
        option: Option<u32>,
        said: &[(&str, &str)],
    ) -> Result<(u32, String), ChoiceError> {
        let variable = |name: &str| {
            let own = said.iter().find(|(own, _)| *own == name);
            own.map(|(_, value)| (*value).to_owned())
        };
        chosen_shard(shards, option, variable).map(|chosen| (chosen.shard, chosen.said_by))
    }

    #[test]
    fn each_engine_counts_from_its_own_first_number() {
        let first = [
            ("SLURM_ARRAY_TASK_ID", "0"),
            ("JOB_COMPLETION_INDEX", "0"),
            ("HQ_TASK_ID", "0"),
            ("PARALLEL_SEQ", "1"),
            ("CI_NODE_INDEX", "1"),
            ("TEST_SHARD_INDEX", "0"),
        ];
        for (name, value) in first {
            assert_eq!(choose(3, None, &[(name, value)]), Ok((0, name.to_owned())));
        }
        // All of them at once, and the option.
        assert_eq!(choose(3, Some(0), &first), Ok((0, "--shard".to_owned())));
        assert_eq!(choose(3, Some(2), &[("SLURM_ARRAY_TASK_ID", "")]), Ok((2, "--shard".into())));
    }

    #[test]
    fn two_that_disagree_are_refused() {
        let said = [("SLURM_ARRAY_TASK_ID", "1"), ("PARALLEL_SEQ", "1")];
        let refused = choose(3, None, &said).unwrap_err().to_string();
        assert!(refused.starts_with("SLURM_ARRAY_TASK_ID says shard 1, PARALLEL_SEQ says shard 0"));
        assert!(choose(3, Some(1), &said[..1]).is_ok());
        assert!(matches!(choose(3, Some(0), &said[..1]), Err(ChoiceError::Disagreeing { .. })));
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for (value, shards) in [("x", 3), ("-1", 3), ("0", 3), ("99999999999", 3)] {
            let chosen = choose(shards, None, &[("CI_NODE_INDEX", value)]);
            assert!(matches!(chosen, Err(ChoiceError::NoNumber { .. })), "{value}: {chosen:?}");
        }
        let too_large = choose(3, None, &[("SLURM_ARRAY_TASK_ID", "3")]);
        assert!(matches!(too_large, Err(ChoiceError::TooLarge { shard: 3, .. })));
        assert_eq!(choose(3, None, &[]), Err(ChoiceError::Unsaid { shards: 3 }));
        // How many there are, only the plan says.
        let count = [("SLURM_ARRAY_TASK_ID", "4"), ("SLURM_ARRAY_TASK_COUNT", "2")];
        assert_eq!(choose(5, None, &count), Ok((4, "SLURM_ARRAY_TASK_ID".into())));
        assert_eq!(choose(1, None, &[]), Ok((0, "the plan".into())));
    }
}
