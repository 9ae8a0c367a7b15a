//! README's table: of each published experiment two figures, beside those of the kept results.
//! `cargo xtask tables --answers` prints it.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::tables::FOLDER;

/// An experiment: the question that it answers, and two figures.
struct Answer {
    scenario: &'static str,
    question: &'static str,
    figures: [Figure; 2],
}

enum Figure {
    /// A published ratio beside the range over what is unknown: test, variant.
    Band(&'static str, &'static str),
    /// A published ratio beside ours: test, variant.
    Ratio(&'static str, &'static str),
    /// Seconds, the middle of all reads: test, variant.
    Read(&'static str, &'static str),
    /// A statement without a figure, and its median here: its name, and what it says in short.
    Said(&'static str, &'static str),
    /// dd's records a second beside those of another variant: test, variant, the other.
    Records(&'static str, &'static str, &'static str),
    /// dd's rate in MB/s (of 1,000,000 bytes), of records of 4096: test, variant.
    Rate(&'static str, &'static str),
}

use Figure::{Band, Rate, Ratio, Read, Records, Said};

const ANSWERS: [Answer; 5] = [
    Answer {
        scenario: "nvram-journal-band",
        question: "ext4's journal on an NVRAM card: synchronous writes; reads",
        figures: [Band("initial write", "external-async"), Band("random read", "external-async")],
    },
    Answer {
        scenario: "emmc-transactional",
        question: "transaction points on eMMC, over ext3: random writes from 16 MiB on (**by an \
                   assumption that data sheets contradict**); reads",
        figures: [Said("random writes (1)", "faster"), Said("reads (1)", "level")],
    },
    Answer {
        scenario: "ramdisk-mirror",
        question: "a RAM disk as leg of a mirror: reads (put in); writes (**not reproduced**)",
        figures: [
            Ratio("whole volume, virtual disks", "v-ram"),
            Ratio("write, virtual disks", "v-three"),
        ],
    },
    Answer {
        scenario: "nvdimm-dax",
        question: "files on an NVDIMM (DAX): dd; over the host's disk (put in)",
        figures: [
            Rate("dd oflag=direct bs=4k", "dax"),
            Records("dd oflag=direct bs=4k", "dax", "disk"),
        ],
    },
    Answer {
        scenario: "ext3-data-modes",
        question: "16 MiB read beside a writer: data=ordered; data=journal",
        figures: [
            Read("read, other file system", "ordered"),
            Read("read, other file system", "journal"),
        ],
    },
];

/// The table, as Markdown.
pub fn table(root: &Path) -> anyhow::Result<String> {
    let mut out = String::from("| question | published | here | `lab run` |\n|---|--:|--:|---|\n");
    for answer in &ANSWERS {
        let path = root.join(FOLDER).join(format!("{}.json", answer.scenario));
        let what = || format!("{}: {}", path.display(), answer.question);
        let text = std::fs::read_to_string(&path).with_context(what)?;
        let results: Value = serde_json::from_str(&text).with_context(what)?;
        let [first, second] = &answer.figures;
        let (published, here) = first.of(&results).with_context(what)?;
        let (published_too, here_too) = second.of(&results).with_context(what)?;
        let command = answer.scenario.trim_end_matches("-band");
        let Answer { question, .. } = answer;
        out += &format!(
            "| {question} | {published}; {published_too} | {here}; {here_too} | `{command}` |\n"
        );
    }
    Ok(out)
}

impl Figure {
    /// The published figure and ours.
    fn of(&self, results: &Value) -> Option<(String, String)> {
        let row = |kind: &str, test: &str, variant: &str| {
            results["summary"]["measurements"]
                .as_array()?
                .iter()
                .find(|row| row["kind"] == kind && row["test"] == test && row["variant"] == variant)
        };
        let times = |value: f64| format!("{value:.2}x");
        Some(match self {
            Band(test, variant) => {
                let ratio = &row("band", test, variant)?["ratio"];
                let of = |which: &str| Some(format!("{:.2}", median(&ratio[which])?));
                let (lowest, highest) = (of("lowest")?, of("highest")?);
                let here =
                    if lowest == highest { lowest } else { format!("{lowest} to {highest}") };
                (times(median(&ratio["published"])?), format!("{here}x"))
            }
            Ratio(test, variant) => {
                let row = row("ratio", test, variant)?;
                (times(median(&row["published_ratio"])?), times(median(&row["ratio"])?))
            }
            Read(test, variant) => {
                let row = row("read_under_write", test, variant)?;
                let published = median(&row["published_seconds"])?;
                let here = median(&row["seconds"]["p50"])?;
                (format!("{published:.0} s"), format!("{here:.1} s"))
            }
            Said(name, said) => {
                let all = results["sentences"].as_array()?;
                let row = all.iter().find(|row| row["name"] == *name)?;
                ((*said).to_owned(), times(row["median"].as_f64()?))
            }
            Records(test, variant, baseline) => {
                let rate = |of: &str, field: &str| median(&row("dd", test, of)?[field]);
                let ratio = |field: &str| Some(rate(variant, field)? / rate(baseline, field)?);
                (times(ratio("published_records_per_s")?), times(ratio("records_per_s")?))
            }
            Rate(test, variant) => {
                let row = row("dd", test, variant)?;
                let rate =
                    |field: &str| Some(format!("{:.0} MB/s", median(&row[field])? * 4096.0 / 1e6));
                (rate("published_records_per_s")?, rate("records_per_s")?)
            }
        })
    }
}

fn median(range: &Value) -> Option<f64> {
    range["median"].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_in_the_kept_results() {
        let table = table(&crate::root()).unwrap();
        assert_eq!(table.lines().count(), 2 + ANSWERS.len());
        assert!(table.contains("| 2.75x; 1.01x |"), "{table}");
    }
}
