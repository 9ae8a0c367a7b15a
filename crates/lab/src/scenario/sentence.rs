//! Sentences of the source that are checked: what it says in words, and when figures bear it out.

use serde::{Deserialize, Serialize};
use steadfast_bench::iozone::matrix::Column;
use steadfast_vfs::options::choose;

use super::fields::Fields;
use super::keys::Table;
use super::wrong::did_you_mean;
use crate::size;

/// What a medium is capable of, as the source says: what is faster comes from a cache.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Medium {
    /// Reading, in MB/s of 1,000,000 bytes.
    pub read_mb_per_s: f64,
    /// Writing, the same.
    pub write_mb_per_s: f64,
}

/// A sentence of the source, and what must hold of the figures for it to be true of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    /// Short, for a table.
    pub name: String,
    /// The source's words.
    pub said: String,
    /// What must hold.
    pub check: Check,
    /// Of which variants.
    pub variants: Vec<String>,
    /// With `ahead`: of whom they are.
    pub over: Vec<String>,
    /// In which tests.
    pub tests: Vec<String>,
    /// File sizes from here on, in bytes.
    pub file_min: u64,
    /// File sizes up to here, in bytes.
    pub file_max: u64,
    /// By which factor.
    pub factor: f64,
    /// In this share of the cells, 0 to 1.
    pub share: f64,
    /// Why these numbers.
    pub reason: String,
    /// Where the figures say otherwise: why, as it was tested.
    pub explained: Option<String>,
}

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
    /// What must hold, in words.
    pub(crate) fn criterion(&self) -> String {
        let (factor, percent) = (self.factor, self.share * 100.0);
        let who = self.variants.join(", ");
        let what = match self.check {
            Check::Comparable => {
                format!("the fastest of {who} is at most {factor} times the slowest")
            }
            Check::Ahead => {
                let over = self.over.join(", ");
                format!("{who}: at least {factor} times as fast as each of {over}")
            }
            Check::Above => format!("{who}: at least {factor} times the medium's speed"),
            Check::Below => format!("{who}: at most {factor} times the medium's speed"),
        };
        let files = match (self.file_min, self.file_max) {
            (0, u64::MAX) => String::new(),
            (0, most) => format!(", files to {}", sized(most)),
            (least, u64::MAX) => format!(", files from {}", sized(least)),
            (least, most) if least == most => format!(", files of {}", sized(least)),
            (least, most) => format!(", files of {} to {}", sized(least), sized(most)),
        };
        format!("{what}, in {percent:.0} % of the cells of {}{files}", self.tests.join(", "))
    }
}

/// 64 kB, 16 MB.
pub(crate) fn sized(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MB", b >> 20),
        b => format!("{} kB", b >> 10),
    }
}

/// The sentences of a scenario.
pub(super) fn sentences(top: &Fields<'_, '_>, variants: &[String]) -> Option<Vec<Sentence>> {
    let tests: Vec<&str> = Column::all().map(Column::name).collect();
    let tables = top.tables("sentence", Table::Sentence);
    let read: Vec<_> = tables.iter().map(|fields| sentence(fields, variants, &tests)).collect();
    if !tables.is_empty() && top.value("source").is_none() {
        let help = "add [source] with title, author, year and address";
        top.wrong("sentence", "sentences that are checked need their source", help);
    }
    let compared = |s: &Option<Sentence>| {
        s.as_ref().is_some_and(|s| matches!(s.check, Check::Above | Check::Below))
    };
    if read.iter().any(compared) && top.value("medium").is_none() {
        let help = "add [medium] with read_mb_per_s and write_mb_per_s";
        top.wrong("sentence", "`above` and `below` are of the medium's speed", help);
    }
    let names: Vec<Option<&String>> = read.iter().map(|s| s.as_ref().map(|s| &s.name)).collect();
    for (i, (name, fields)) in names.iter().zip(&tables).enumerate() {
        if let Some(name) = name.filter(|_| names[..i].contains(name)) {
            fields.wrong("name", format!("two sentences are called `{name}`"), "");
        }
    }
    read.into_iter().collect()
}

fn sentence(fields: &Fields<'_, '_>, variants: &[String], tests: &[&str]) -> Option<Sentence> {
    let known = || variants.iter().map(String::as_str);
    let check: Option<Check> = fields.take("check");
    let of_variants = words(fields, "variants", || known().collect());
    let over = words(fields, "over", || known().collect());
    let of_tests = words(fields, "tests", || tests.to_vec());
    if check == Some(Check::Ahead) && over.as_ref().is_some_and(Vec::is_empty) {
        fields.wrong("check", "`ahead` needs `over`: of whom they are ahead", "");
    }
    if check.is_some_and(|c| c != Check::Ahead) && fields.value("over").is_some() {
        fields.wrong("over", "`over` belongs to check = \"ahead\"", "");
    }
    if let Some(one) =
        of_variants.as_ref().filter(|v| check == Some(Check::Comparable) && v.len() == 1)
    {
        let what = format!("`{}` alone is comparable with nothing", one[0]);
        fields.wrong("variants", what, "name two variants or more");
    }
    for both in over.iter().flatten().filter(|o| of_variants.iter().flatten().any(|v| v == *o)) {
        fields.wrong_word("over", both, format!("`{both}` cannot be ahead of itself"));
    }
    let file = |name: &str, without: u64| match fields.value(name) {
        None => Some(without),
        Some(_) => {
            let text: String = fields.take(name)?;
            size::parse(&text).map_err(|e| fields.wrong(name, e.to_string(), "")).ok()
        }
    };
    let (file_min, file_max) = (file("file_min", 0), file("file_max", u64::MAX));
    if let (Some(least), Some(most)) = (file_min, file_max)
        && least > most
    {
        fields.wrong("file_max", "`file_max` is below `file_min`: no file has such a size", "");
    }
    let (factor, share) = (fields.take::<f64>("factor"), fields.take::<f64>("share"));
    if factor.is_some_and(|f| !(f > 0.0 && f <= 1000.0)) {
        fields.wrong("factor", "`factor` must be above 0 and at most 1000", "");
    }
    if check == Some(Check::Comparable) && factor.is_some_and(|f| f > 0.0 && f < 1.0) {
        let what = "the fastest is never less than 1 times the slowest";
        fields.wrong("factor", what, "`comparable` needs a factor of 1 or more");
    }
    if share.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
        fields.wrong("share", "`share` must be above 0 and at most 1", "");
    }
    let (name, said, reason) = (fields.take("name"), fields.take("said"), fields.take("reason"));
    let explained = fields.value("explained").and_then(|_| fields.take("explained"));
    Some(Sentence {
        name: name?,
        said: said?,
        check: check?,
        variants: of_variants?,
        over: over?,
        tests: of_tests?,
        file_min: file_min?,
        file_max: file_max?,
        factor: factor?,
        share: share?,
        reason: reason?,
        explained,
    })
}

/// A list of words, all of them known.
fn words<'a>(
    fields: &Fields<'_, '_>,
    name: &str,
    known: impl Fn() -> Vec<&'a str>,
) -> Option<Vec<String>> {
    let words: Vec<String> = fields.take(name)?;
    if words.is_empty() && name != "over" && fields.value(name).is_some() {
        let help = choose(known());
        fields.wrong(name, format!("`{name}` is empty: the sentence says nothing"), help);
    }
    for (i, word) in words.iter().enumerate() {
        if words[..i].contains(word) {
            fields.wrong_word(name, word, format!("`{word}` is there twice"));
        }
    }
    for word in words.iter().filter(|word| !known().contains(&word.as_str())) {
        fields.wrong_word(
            name,
            word,
            format!("`{word}` is unknown: {}", did_you_mean(word, known())),
        );
    }
    Some(words)
}

/// What the medium is capable of.
pub(super) fn medium(top: &Fields<'_, '_>) -> Option<Medium> {
    top.value("medium")?;
    let fields = top.table("medium", Table::Medium, "[medium]")?;
    let rate = |name: &str| {
        let rate: Option<f64> = fields.take(name);
        if rate.is_some_and(|r| !(r > 0.0 && r <= 1e6)) {
            fields.wrong(name, format!("`{name}` must be above 0 and at most 1000000"), "");
        }
        rate
    };
    let (read, write) = (rate("read_mb_per_s"), rate("write_mb_per_s"));
    Some(Medium { read_mb_per_s: read?, write_mb_per_s: write? })
}
