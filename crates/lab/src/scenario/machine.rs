//! `bdflush` of `[machine]`: how Linux 2.4 wrote back.

use super::LineError;

/// The nine numbers of `/proc/sys/vm/bdflush`; an empty text: none, today's settings.
///
/// # Errors
/// They are not nine whole numbers that the kernel takes.
pub fn bdflush(text: &str) -> Result<Option<[u32; 9]>, LineError> {
    if text.is_empty() {
        return Ok(None);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers: Result<Vec<u32>, _> = words.iter().map(|w| w.parse::<u32>()).collect();
    let numbers = numbers.map_err(|_| LineError::BdflushNumbers(text.to_owned()))?;
    let n = numbers.len();
    let nine: [u32; 9] = numbers.try_into().map_err(|_| LineError::BdflushCount(n))?;
    for (place, number, most) in BOUNDS.map(|(i, most)| (i + 1, nine[i], most)) {
        if number > most {
            return Err(LineError::BdflushTooLarge { place, most, number });
        }
    }
    Ok(Some(nine))
}

/// What Linux 2.4 takes at most (fs/buffer.c, `bdflush_max`; a tick is 10 ms): the two percentages,
/// the interval, and the age of a buffer.
const BOUNDS: [(usize, u32); 4] = [(0, 100), (4, 1_000_000), (5, 1_000_000), (6, 100)];

#[cfg(test)]
mod tests {
    use steadfast_setup::options;

    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn dirty_data_waits_as_long_as_on_a_mount_unless_it_is_said() {
        let text = include_str!("../../scenarios/data-at-risk.toml");
        let scenario = Scenario::parse(text, "data-at-risk").unwrap();
        let waits = |name: &str| {
            let variant = scenario.variants.iter().find(|v| v.name == name).unwrap();
            let mut options = options::mount(&format!("{},commit=9", variant.mount)).unwrap();
            scenario.machine_of(variant).apply(64 << 20, &mut options);
            let pages = options.page_cache;
            (pages.dirty_expire_ms, pages.writeback_interval_ms)
        };
        assert_eq!(waits("ordered"), (9000, 4500));
        assert_eq!(waits("ordered-30s"), (30_000, 5000));
    }

    #[test]
    fn bdflush_has_nine_numbers() {
        let line = "40 0 0 0 60 300 60 0 0";
        assert_eq!(bdflush(line).unwrap(), Some([40, 0, 0, 0, 60, 300, 60, 0, 0]));
        assert_eq!(bdflush("").unwrap(), None);
        assert!(bdflush("40 0").unwrap_err().to_string().contains("not 2"));
        assert!(
            bdflush("40 0 0 0 60 300 60 0 x").unwrap_err().to_string().contains("whole numbers")
        );
        assert!(bdflush("-1 0 0 0 60 300 60 0 0").is_err());
        assert!(bdflush("101 0 0 0 60 300 60 0 0").unwrap_err().to_string().contains("number 1"));
        assert!(
            bdflush("40 0 0 0 60 300 101 0 0")
                .unwrap_err()
                .to_string()
                .contains("at most 100, not 101")
        );
    }
}
