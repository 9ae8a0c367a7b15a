//! How many functions a type has: those of all its inherent `impl` blocks, wherever they are in its
//! crate, private ones too. What traits ask for does not count.

use std::collections::BTreeMap;

use super::resolve;
use super::source::Crate;

/// The functions of each type of a crate, by its path, which begins with the crate.
pub fn counts(of: &Crate) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (number, module) in of.modules.iter().enumerate() {
        for (path, count) in &module.functions {
            for (declares, name) in resolve::items(of, number, path) {
                let mut path = vec![of.name.clone()];
                path.extend(of.modules[declares].path.iter().cloned().chain([name]));
                *counts.entry(path.join("::")).or_default() += count;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_all_files_are_added_up() {
        let one = Crate::of_texts(
            "one",
            &[
                ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
                ("a.rs", "pub struct A; impl A { fn f() {} pub fn g(&self) {} const C: u8 = 1; }"),
                (
                    "b.rs",
                    "impl<T> super::A<T> { fn h() {} #[cfg(test)] fn of_tests() {} }
                     impl Clone for super::A { fn clone(&self) -> Self { Self } }",
                ),
                ("c.rs", "struct A; impl A { fn i() {} }"),
            ],
        );
        let expected = [("one::a::A".to_owned(), 3), ("one::c::A".to_owned(), 1)];
        assert_eq!(counts(&one), BTreeMap::from(expected));
    }
}
