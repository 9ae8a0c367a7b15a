//! Whether it is what the source published.

use super::{Sentence, verb};
use crate::results::{Ratio, Results, SentenceRow, Spread, Verdict, answer as of_band, distinct};

/// Within so much of the published one a figure agrees, in per cent.
const AGREES: f64 = 10.0;

/// How many of the published figures, ratios and sentences agree.
pub(super) fn sentence(results: &Results) -> Option<Sentence> {
    if let Some(of_band) = of_band(&results.runs) {
        return Some(Sentence::plain(of_band));
    }
    let mut parts = Vec::new();
    let known = results.published.iter().filter(|row| row.verdict != Verdict::NotMeasured);
    let (mut n, mut agree) = (0, 0);
    for row in known {
        n += 1;
        agree += usize::from(row.verdict == Verdict::Agrees);
    }
    if n > 0 {
        parts.push(format!("of {n} figures {agree} {} within a tenth", verb(agree, "is", "are")));
    }
    let (n, agree) = ratios(results);
    if n > 0 {
        parts.push(format!("of {n} ratios {agree}"));
    }
    let checked = |s: &&SentenceRow| !s.criterion.is_empty() && s.verdict != Verdict::NotMeasured;
    let (n, borne_out) =
        results.sentences.iter().filter(checked).fold((0, 0), |(n, agree), s| {
            (n + 1, agree + usize::from(s.verdict == Verdict::Agrees))
        });
    if n > 0 {
        let are = verb(borne_out, "is", "are");
        parts.push(format!("of {n} statements that were checked {borne_out} {are} borne out"));
    }
    let text = format!("Against the published report: {}.", parts.join("; "));
    (!parts.is_empty()).then(|| Sentence::plain(text))
}

/// Ratios that the source has too, and how many of them agree.
fn ratios(results: &Results) -> (usize, usize) {
    let rows: Vec<&Ratio> =
        results.all::<Ratio>().filter(|r| r.published_ratio.is_some()).collect();
    let mut agree = 0;
    let all = distinct(rows.iter().map(|r| (r.test.as_str(), r.variant.as_str())));
    for (test, variant) in &all {
        let of = rows.iter().filter(|r| r.test == *test && r.variant == *variant);
        let off: Vec<f64> = of.filter_map(|r| r.difference_percent).collect();
        agree += usize::from(!off.is_empty() && Spread::of(&off).median().abs() <= AGREES);
    }
    (all.len(), agree)
}
