//! What the tokens of a macro name and declare, which only the macro could parse.

use proc_macro2::{Ident, TokenStream, TokenTree};

/// All paths, those of one word too; a word after a dot is a field and none.
pub fn paths(tokens: TokenStream) -> Vec<Vec<String>> {
    let (mut found, mut path) = (Vec::new(), Vec::new());
    // So many colons follow the path; whether a dot stands before what comes next.
    let (mut colons, mut after_dot) = (0, false);
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    found.push(std::mem::take(&mut path));
                }
                if !after_dot {
                    path.push(word.to_string());
                }
                (colons, after_dot) = (0, false);
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
            other => {
                found.push(std::mem::take(&mut path));
                colons = 0;
                after_dot = matches!(&other, TokenTree::Punct(punct) if punct.as_char() == '.');
                if let TokenTree::Group(group) = other {
                    found.extend(paths(group.stream()));
                }
            }
        }
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
    found
}

/// The types that a macro between items declares: the words after `struct` and its like.
pub fn declared(tokens: TokenStream) -> Vec<Ident> {
    let (mut found, mut is_next) = (Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Ident(word) if is_next => {
                found.push(word);
                is_next = false;
            }
            TokenTree::Ident(word) => {
                is_next = ["struct", "enum", "union", "trait"].iter().any(|known| word == known);
            }
            _ => is_next = false,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_groups_and_fields_are_none() {
        let found = paths("\"{}\", crate::a::B(c.d, e::f), g: h".parse().unwrap());
        let words: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(words, ["crate::a::B", "c", "e::f", "g", "h"]);
    }

    #[test]
    fn declared_types_are_found() {
        let found = declared("/// a\n pub struct A { b: u8 } enum C {}".parse().unwrap());
        assert_eq!(found, ["A", "C"]);
    }
}
