//! What README claims in numbers: each must stand in its tables and excerpts, which are made of the
//! results that are kept in docs/results, and compared with them ([`tables`](crate::tables)).

/// Begins and ends what the program has printed.
const PRINTED: (&str, &str) = ("<!-- table", "<!-- /table -->");
/// What makes a number a claim.
const UNITS: [&str; 6] = [" times", "x", " %", " MB/s", " KiB", " MiB"];
/// Numbers with such a unit that are of no result: a size that is asked for.
const NO_RESULTS: [&str; 1] = ["16 MiB"];

/// Claims that nothing printed has.
pub fn check(name: &str, page: &str) -> Vec<String> {
    let (mut prose, mut printed, mut code) = (Vec::new(), String::new(), false);
    let mut is_printed = false;
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            code = !code;
        }
        if line.starts_with(PRINTED.0) {
            is_printed = true;
        } else if line.starts_with(PRINTED.1) {
            is_printed = false;
        } else if is_printed {
            printed += line;
            printed.push('\n');
        } else if !code && !line.starts_with('|') {
            prose.push((number + 1, line));
        }
    }
    let known = numbers(&printed);
    let mut faults = Vec::new();
    for (number, line) in prose {
        for (claim, value) in claims(line) {
            if !known.contains(&value) && !NO_RESULTS.contains(&claim.as_str()) {
                faults.push(format!("{name}:{number}: {claim}: no result that is printed has it"));
            }
        }
    }
    faults
}

/// Numbers of a text, as they are written.
fn numbers(text: &str) -> Vec<&str> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let all = text.split(|c: char| !is_number(c)).map(|word| word.trim_matches('.'));
    all.filter(|word| !word.is_empty()).collect()
}

/// Numbers with a unit: both in words, and the number.
fn claims(line: &str) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let tail = &rest[at..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        let (number, after) = tail.split_at(end);
        let ends = |unit: &&&str| {
            let next = after.strip_prefix(**unit).map(|more| more.chars().next());
            next.is_some_and(|c| !c.is_some_and(char::is_alphanumeric))
        };
        if let Some(unit) = UNITS.iter().find(ends) {
            found.push((format!("{number}{unit}"), number));
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_in_what_was_printed() {
        let page = "It is 3.51 times as fast, 2x, within 10 %, of 16 MiB, on 64 bit, x86.\n\
                    <!-- table quick: steadfast lab show a -->\n```\n3.51x and 10 %\n```\n\
                    <!-- /table -->\n```\n7 times\n```\n";
        assert_eq!(check("a.md", page), ["a.md:1: 2x: no result that is printed has it"]);
        assert!(check("a.md", "64 bit, 2,862 KiBs, x86-64\n").is_empty());
    }

    #[test]
    fn readme_claims_what_the_results_have() {
        let readme = std::fs::read_to_string(crate::root().join("README.md")).unwrap();
        assert_eq!(check("README.md", &readme), Vec::<String>::new());
        // The check finds what it is to find.
        let wrong =
            readme.replace("3.51 times as fast as with it", "3.61 times as fast as with it");
        assert_eq!(check("README.md", &wrong).len(), 1);
    }
}
