//! How the page looks: on a laptop, on paper, on a dark screen. No other file is loaded.

use super::theme::{DARK, LIGHT};

/// Whatever a text of the results were to smuggle in: no script runs, nothing is loaded.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
    form-action 'none'";

const ALWAYS: &str = "
:root { color-scheme: light dark; --ink: #1a1a1a; --dim: #595959; --paper: #ffffff;
        --line: #d0d0d0; --strong: #767676; --shade: #f2f4f6; --bad: #b00020; --link: #005a9c;
        --note: #fff8e1; --edge: #b07900; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 1080px; margin: 1.5rem auto 3rem; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
a { color: var(--link); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0;
         margin: .8rem 0; }
code { background: var(--shade); padding: .1rem .3rem; font-size: .9em; }
pre { background: var(--shade); padding: .6rem .8rem; white-space: pre-wrap; }
pre code { padding: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .8rem 0;
        font-size: 13px; line-height: 1.35; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line); text-align: right;
         vertical-align: top; }
th:first-child, td:first-child, tbody th { text-align: left; font-weight: 400; }
thead th { border-bottom: 2px solid var(--strong); vertical-align: bottom; font-weight: 600; }
.words th, .words td { text-align: left; }
.words td { overflow-wrap: anywhere; min-width: 6.5em; }
.words code { overflow-wrap: anywhere; }
td small { color: var(--dim); white-space: nowrap; }
th small { color: var(--dim); }
.bad { color: var(--bad); font-weight: 600; }
.note { background: var(--note); border-left: 4px solid var(--edge); padding: .4rem .8rem; }
.note.bad { border-left-color: var(--bad); }
.said { font-size: 1.05rem; margin: .35rem 0; max-width: 60rem; }
.stacks thead th:nth-child(2) { text-align: left; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr));
          gap: .6rem 1.4rem; }
.maps { display: flex; flex-wrap: wrap; gap: .6rem 1.4rem; }
figure { margin: .6rem 0; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
.words small { white-space: normal; }
.caption { color: var(--dim); font-size: 13.5px; max-width: 60rem; margin: .4rem 0 .8rem; }
svg { max-width: 100%; height: auto; display: block; }
@media screen and (max-width: 600px) {
  .stacks { font-size: 11px; }
  .stacks th, .stacks td { padding: .25rem .15rem; }
  .stacks tbody th { max-width: 6.5rem; }
  .words thead { display: none; }
  .words, .words tbody, .words tr, .words th, .words td { display: block; }
  .words tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .words th, .words td { border-bottom: none; padding: .1rem 0; }
  .words tbody th { font-weight: 600; }
  .words tbody th q { font-weight: 400; }
  .words td[data-of]::before { content: attr(data-of) ': '; color: var(--dim); font-weight: 400; }
}
";

const ON_DARK: &str = "
:root { --ink: #e8e8e8; --dim: #a9b0b8; --paper: #15181c; --line: #343a41; --strong: #8a929b;
        --shade: #22272d; --bad: #ff8a9a; --link: #7cc0ff; --note: #2b2615; --edge: #d9a520; }
";

const ON_PAPER: &str = "
@page { size: A4; margin: 12mm; }
body { max-width: none; margin: 0; padding: 0; font-size: 10.5pt; }
nav { display: none; }
a { color: inherit; text-decoration: none; }
.wide { overflow: visible; }
table { font-size: 8pt; }
th, td { padding: .15rem .3rem; }
thead { display: table-header-group; }
figure, tr, .note, pre { break-inside: avoid; }
details::details-content { content-visibility: visible; block-size: auto; }
h2, h3, caption { break-after: avoid; }
* { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
";

/// The style sheet.
pub(super) fn sheet() -> String {
    format!(
        "{ALWAYS}{}\n@media screen and (prefers-color-scheme: dark) {{{ON_DARK}{}}}\n\
         @media print {{{ON_PAPER}}}\n",
        LIGHT.rules(),
        DARK.rules()
    )
}
