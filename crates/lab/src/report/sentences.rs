//! What the source says in words, sentence by sentence: said, measured, and whether they agree.

use maud::{Markup, html};

use crate::results::{Results, Verdict};

/// The table; `None`: the source's sentences were not checked.
pub(super) fn all(results: &Results) -> Option<Markup> {
    (!results.sentences.is_empty()).then(|| {
        html! {
            p.caption {
                "What must hold was decided before anything was measured. Cells: pairs of a file \
                 size and a record size."
            }
            div.wide { table.words {
                thead { tr {
                    th scope="col" { "said" } th scope="col" { "measured" }
                    th scope="col" { "figures say" } th scope="col" { "what must hold, and why so" }
                } }
                tbody { @for s in &results.sentences { tr {
                    th scope="row" { strong { (s.name) } br; q { (s.said) } }
                    td data-of="measured" { (s.measured()) }
                    td.bad[s.verdict == Verdict::Disagrees] data-of="figures say" { (s.found()) }
                    td data-of="what must hold, and why so" {
                        (s.criterion) br; small { (s.reason) }
                        @if let Some(why) = &s.by_construction { br; "By construction: " (why) }
                        @if let Some(why) = &s.explained { br; strong { "Why otherwise: " } (why) }
                    }
                } } }
            } }
        }
    })
}
