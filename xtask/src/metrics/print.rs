//! The metrics as text.

use super::source::Crate;
use super::{SourceMetrics, cycles, limits, names};

/// So many of the worst are printed.
const WORST: usize = 10;
/// The same of names.
const WORST_NAMES: usize = 40;

/// A line for each metric.
pub fn summary(crates: &[Crate], metrics: &SourceMetrics) {
    println!("    {}", lines_of_all(crates));
    println!("    {}", largest_cycle(metrics));
    println!("    {}", shared(metrics));
    println!("    {}", nothing(metrics));
    if let Some((name, count)) = most_functions(metrics).first() {
        println!("    {name} has most functions: {count} (goal: at most {})", limits::FUNCTIONS);
    }
}

/// Everything.
pub fn all(crates: &[Crate], metrics: &SourceMetrics) {
    println!("{}", lines_of_all(crates));
    let mut by_lines: Vec<&Crate> = crates.iter().collect();
    by_lines.sort_by_key(|one| std::cmp::Reverse(lines(one)));
    for one in by_lines {
        let note = if one.is_published { "" } else { ", not published" };
        println!("{:8} {} ({} files{note})", lines(one), one.name, one.files.len());
    }
    println!("\n{}", largest_cycle(metrics));
    print_cycles(metrics);
    println!("\n{}", shared(metrics));
    let mut worst: Vec<_> = metrics.declared.iter().collect();
    worst.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
    for (name, places) in worst.iter().take(WORST_NAMES) {
        println!("{:8} {name}: {}", places.len(), places.join(" "));
    }
    println!("\n{}", nothing(metrics));
    let bad = worst.iter().filter(|(name, _)| names::names_nothing(name));
    let bad: Vec<String> = bad.map(|(name, places)| format!("{name} {}", places.len())).collect();
    println!("    {}", bad.join(", "));
    println!("\nfunctions of a type (goal: at most {})", limits::FUNCTIONS);
    for (name, count) in most_functions(metrics).iter().take(WORST) {
        println!("{count:8} {name}");
    }
    println!();
}

fn lines(of: &Crate) -> usize {
    of.files.iter().map(|file| file.lines).sum()
}

fn lines_of_all(crates: &[Crate]) -> String {
    let all: usize = crates.iter().map(lines).sum();
    let published: usize = crates.iter().filter(|one| one.is_published).map(lines).sum();
    format!("{published} product lines in published crates, {all} in all (tests left out)")
}

fn largest_cycle(metrics: &SourceMetrics) -> String {
    let sizes = metrics.edges.iter().map(|(one, edges)| (cycles::size(edges), one.name.as_str()));
    let (size, name) = sizes.max().unwrap_or_default();
    format!("the largest cycle of files has {size}, in {name} (goal: at most {})", limits::CYCLE)
}

fn shared(metrics: &SourceMetrics) -> String {
    let (share, names) = (names::shared_per_mille(&metrics.declared), metrics.declared.len());
    let types: usize = metrics.declared.values().map(Vec::len).sum();
    let (share, goal) = (per_cent(share), per_cent(limits::SHARED_PER_MILLE));
    format!("{share} % of the {names} names of {types} types mean several (goal: below {goal} %)")
}

fn per_cent(per_mille: usize) -> String {
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

fn nothing(metrics: &SourceMetrics) -> String {
    let count = metrics.names_nothing();
    format!("{count} types are called by a participle, a pronoun or a word for anything (goal: 0)")
}

fn most_functions<'a>(metrics: &'a SourceMetrics) -> Vec<(&'a String, &'a usize)> {
    let mut all: Vec<_> = metrics.functions.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    all
}

fn print_cycles(metrics: &SourceMetrics) {
    let mut by_size: Vec<_> = metrics.edges.iter().collect();
    by_size.sort_by_key(|(_, edges)| std::cmp::Reverse(cycles::size(edges)));
    for (one, edges) in by_size {
        let cycles = cycles::cycles(edges);
        let sizes: Vec<String> = cycles.iter().map(|cycle| cycle.len().to_string()).collect();
        if cycles.is_empty() {
            continue;
        }
        println!("{:>8} {}", sizes.join("+"), one.name);
        for cycle in cycles.iter().filter(|cycle| cycle.len() > limits::CYCLE) {
            let files: Vec<String> = cycle.iter().map(|file| one.short(*file)).collect();
            println!("         {}", files.join(" "));
        }
        for (cut, size) in cycles::cuts(one, edges, limits::CYCLE) {
            println!("         -> {size}: {cut}");
        }
    }
}
