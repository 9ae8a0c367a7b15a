//! The tables of small runs, as a terminal shows them, beside what they were: `golden/NAME.txt`.
//!
//! A change is made on purpose: `SNAPSHOTS=overwrite cargo test -p steadfast-lab --test
//! experiments` writes the files anew.

use std::path::Path;

use snapbox::{Data, assert_data_eq};
use steadfast_lab::results::Results;
use steadfast_lab::table::{Layout, answer_text, text};

/// The tables are those of the file, not of a soak, which cuts more often; what stands first fits a
/// terminal.
pub fn assert_tables(name: &str, results: &Results) {
    let answer = answer_text(results, Layout::default());
    assert!(answer.lines().count() <= 24, "{answer}");
    assert!(answer.lines().all(|line| line.chars().count() <= 80), "{answer}");
    if std::env::var_os("STEADFAST_SOAK").is_some() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/experiments/golden");
    let expected = Data::read_from(&folder.join(format!("{name}.txt")), None);
    // `[..]` and the like stand for themselves: a table is what it is.
    assert_data_eq!(text(results, Layout::default()), expected.raw());
}
