//! Names of types: those that mean more than one type, and those that name nothing.
//!
//! A name means two types if it is declared in two places of the workspace, whatever their modules
//! and crates. The share is that of the names, not of the types: of names that are declared more
//! than once in all names. Types that a function has for itself count too; one that is declared
//! for each of several `cfg` counts once.

use std::collections::BTreeMap;

use super::source::Crate;

/// Words that are no participles, but look like it, and the one that a standard error is called by.
const NO_PARTICIPLES: &str = "Feed Need Seed Speed Unsupported";
/// Participles that do not end in -ed.
const PARTICIPLES: &str = "Begun Bound Broken Built Chosen Committing Done Forgotten Found Frozen \
    Given Held Hidden Kept Known Lacking Left Lost Made Met Running Said Seen Sent Shown Shrunk \
    Spent Taken Torn Unwritten Waiting Written";
/// Pronouns, adverbs, prepositions, adjectives, verbs; the last three are nouns for anything.
const OTHERS: &str = "About Ahead All Around Aside At Away Before Behind Below Beside Can How \
    Inner Inside Last Like New Next Nobody On Other Others Out Over Ran Someone Something Then \
    There Took Twice Up Wants What Which Who Whole Kind Outcome Way";

/// Where each name is declared: `path:line`.
pub fn declared(crates: &[Crate]) -> BTreeMap<&str, Vec<String>> {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in crates {
        for of in &one.types {
            let place = format!("{}:{}", one.files[of.file].path.display(), of.line);
            all.entry(&of.name).or_default().push(place);
        }
    }
    all
}

/// Names that are declared more than once, in thousandths of all names.
pub fn shared_per_mille(declared: &BTreeMap<&str, Vec<String>>) -> usize {
    let shared = declared.values().filter(|places| places.len() > 1).count();
    (1000 * shared + declared.len() / 2) / declared.len().max(1)
}

/// Whether a name of one word is a participle or pronoun, or could be that of any type.
pub fn names_nothing(name: &str) -> bool {
    let is_one_word = !name.chars().skip(1).any(|c| c.is_ascii_uppercase());
    let is_of = |list: &str| list.split(' ').any(|word| word == name);
    let is_participle = is_one_word && name.ends_with("ed") && !is_of(NO_PARTICIPLES);
    is_participle || is_of(PARTICIPLES) || is_of(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_types_is_found_wherever_they_are() {
        let one = Crate::of_texts(
            "one",
            &[
                (
                    "lib.rs",
                    "mod a; enum Thrice {} #[cfg(unix)] pub struct Once;
                     #[cfg(not(unix))] pub struct Once(u8);",
                ),
                ("a.rs", "trait Thrice { type Once; } mod b { type Thrice = u8; }"),
            ],
        );
        let test = "union Two { a: u8 } #[cfg(test)] struct Once;
            #[cfg(test)] mod tests { struct Once; }";
        let two = Crate::of_texts("two", &[("lib.rs", test), ("tests.rs", "")]);
        let three = Crate::of_texts("three", &[("lib.rs", "fn f() { struct Two; }")]);
        let crates = [one, two, three];
        let declared = declared(&crates);
        let counts: Vec<(&str, usize)> =
            declared.iter().map(|(name, places)| (*name, places.len())).collect();
        assert_eq!(counts, [("Once", 1), ("Thrice", 3), ("Two", 2)]);
        assert_eq!(declared["Thrice"][0], "one/src/a.rs:1");
        assert_eq!(shared_per_mille(&declared), 667);
    }

    #[test]
    fn participles_and_pronouns_are_known() {
        assert!(["Found", "Mounted", "What", "Kind"].into_iter().all(names_nothing));
        let good = ["Seed", "ModelKind", "Event", "NotMounted", "Unsupported"];
        assert!(!good.into_iter().any(names_nothing));
    }
}
