//! Sentences of the source that are checked: what it says in words, and when figures bear it out.

use std::ops::RangeInclusive;

use serde::Deserialize;
use steadfast_bench::iozone::matrix::Column;
use steadfast_devices::model::parameters::Size;
use steadfast_setup::form::{Fields, did_you_mean};
use steadfast_setup::{single_values, table};
use steadfast_vfs::options::choose;

use super::copies::check_names;

table! {
    /// A sentence of the source, and what must hold of the figures for it to be true of them.
    pub struct Sentence: "[[sentence]]", check Sentence::check_keys {
        /// Short, for the table.
        name: String;
        /// The source's words.
        said: String;
        /// What must hold: `comparable` (the fastest of `variants` is at most `factor` times the
        /// slowest), `ahead` (each is at least `factor` times as fast as each of `over`), `above`,
        /// `below` (each is at least, at most `factor` times as fast as the medium).
        check: Option<Check>, else "it is not checked: `explained` says why";
        /// Names of variants.
        variants: Vec<String> = [];
        /// With `ahead`: of whom they are.
        over: Vec<String> = [];
        /// Tests: of IOzone's matrix `write`, `random read` ...; else those that `[[published]]`
        /// can name.
        tests: Vec<String> = [];
        /// Files of at least this size.
        file_min: Option<Size>, else "all";
        /// Files of at most this size.
        file_max: Option<Size>, else "all";
        /// By which factor.
        factor: f64 = 1.0, above 0 to 1000;
        /// With `ahead`: by which factor at most.
        factor_most: Option<f64>, else "any", above 0 to 1000;
        /// In this share of the cells.
        share: f64 = 1.0, above 0 to 1;
        /// Why these numbers: decided before measuring.
        reason: String = "";
        /// Printed where the figures say otherwise, or it is not checked: why.
        explained: Option<String>, else "nothing is said";
        /// Why it could hardly be otherwise here.
        by_construction: Option<String>, else "it could";
    }
}

single_values!(Check);

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// The fastest of the variants is at most `factor` times the slowest.
    Comparable,
    /// Each variant is at least `factor` times as fast as each of `over`.
    Ahead,
    /// Each variant is at least `factor` times as fast as the medium.
    Above,
    /// Each variant is at most `factor` times as fast as the medium.
    Below,
}

impl Sentence {
    fn check_keys(fields: &Fields<'_>, _: Option<&Sentence>) {
        let check: Option<Check> = fields.get("check");
        let needed: &[&str] = match fields.has("check") {
            true => &["variants", "tests", "factor", "reason"],
            false => &["explained"],
        };
        for key in needed.iter().filter(|key| !fields.has(key)) {
            fields.wrong("", format!("`{key}` is missing in [[sentence]]"), "");
        }
        let list = |key| fields.get::<Vec<String>>(key).unwrap_or_default();
        let (variants, over) = (list("variants"), list("over"));
        if check == Some(Check::Ahead) && over.is_empty() {
            fields.wrong("check", "`ahead` needs `over`: of whom they are ahead", "");
        }
        for key in ["over", "factor_most"] {
            if check != Some(Check::Ahead) && fields.has(key) {
                fields.wrong(key, format!("`{key}` belongs to check = \"ahead\""), "");
            }
        }
        if check == Some(Check::Comparable) && variants.len() == 1 {
            let what = format!("`{}` alone is comparable with nothing", variants[0]);
            fields.wrong("variants", what, "name two variants or more");
        }
        for both in over.iter().filter(|over| variants.contains(over)) {
            fields.wrong_word("over", both, format!("`{both}` cannot be ahead of itself"));
        }
        let size = |key| fields.get::<Size>(key).map(|size| size.0);
        if size("file_min").zip(size("file_max")).is_some_and(|(least, most)| least > most) {
            let what = "`file_max` is below `file_min`: no file has such a size";
            fields.wrong("file_max", what, "");
        }
        let below_one = fields.get("factor").is_some_and(|f: f64| f > 0.0 && f < 1.0);
        if check == Some(Check::Comparable) && below_one {
            let what = "the fastest is never less than 1 times the slowest";
            fields.wrong("factor", what, "`comparable` needs a factor of 1 or more");
        }
    }

    /// The sizes of the files, in bytes.
    pub(crate) fn file_bytes(&self) -> RangeInclusive<u64> {
        let of = |size: &Option<Size>| size.as_ref().map(|size| size.0);
        of(&self.file_min).unwrap_or(0)..=of(&self.file_max).unwrap_or(u64::MAX)
    }

    /// What must hold, in words.
    pub(crate) fn criterion(&self) -> String {
        let Some(check) = self.check else { return String::new() };
        let (factor, percent) = (self.factor, self.share * 100.0);
        let who = self.variants.join(", ");
        let what = match check {
            Check::Comparable => {
                format!("the fastest of {who} is at most {factor} times the slowest")
            }
            Check::Ahead => {
                let over = self.over.join(", ");
                let most = self.factor_most.map(|most| format!(", at most {most} times"));
                let most = most.unwrap_or_default();
                format!("{who}: at least {factor} times as fast as each of {over}{most}")
            }
            Check::Above => format!("{who}: at least {factor} times the medium's speed"),
            Check::Below => format!("{who}: at most {factor} times the medium's speed"),
        };
        let files = match self.file_bytes().into_inner() {
            (0, u64::MAX) => String::new(),
            (0, most) => format!(", files to {}", sized(most)),
            (least, u64::MAX) => format!(", files from {}", sized(least)),
            (least, most) if least == most => format!(", files of {}", sized(least)),
            (least, most) => format!(", files of {} to {}", sized(least), sized(most)),
        };
        format!("{what}, in {percent:.0} % of the cells of {}{files}", self.tests.join(", "))
    }
}

/// 64 KiB, 16 MiB.
pub(crate) fn sized(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b => format!("{} KiB", b >> 10),
    }
}

/// Notes what is wrong with sentences beside other tables: names that are not there, or are two
/// sentences', and a medium that is missing.
pub(super) fn check(top: &Fields<'_>, variants: &[String], others: &[String]) {
    let tables = top.tables("sentence");
    let of_medium = |fields: &Fields<'_>| {
        fields.get("check").is_some_and(|c| matches!(c, Check::Above | Check::Below))
    };
    if tables.iter().any(of_medium) && !top.has("medium") {
        let help = "add [medium] with read_mb_per_s and write_mb_per_s";
        top.wrong("sentence", "`above` and `below` are of the medium's speed", help);
    }
    check_names(&tables, "name", "sentences");
    let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
    let mut tests: Vec<&str> = Column::all().map(Column::name).collect();
    tests.extend(others.iter().map(String::as_str));
    for fields in &tables {
        check_words(fields, "variants", &variants);
        check_words(fields, "over", &variants);
        check_words(fields, "tests", &tests);
    }
}

/// Notes words of a list that are unknown, or there twice, and an empty list.
fn check_words(fields: &Fields<'_>, name: &str, known: &[&str]) {
    let Some(words) = fields.get::<Vec<String>>(name) else { return };
    if words.is_empty() && name != "over" {
        let what = format!("`{name}` is empty: the sentence says nothing");
        fields.wrong(name, what, choose(known));
    }
    for (i, word) in words.iter().enumerate() {
        if words[..i].contains(word) {
            fields.wrong_word(name, word, format!("`{word}` is there twice"));
        }
        if !known.contains(&word.as_str()) {
            let help = did_you_mean(word, known.iter().copied());
            fields.wrong_word(name, word, format!("`{word}` is unknown: {help}"));
        }
    }
}
