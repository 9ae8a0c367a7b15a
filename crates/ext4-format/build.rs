//! The code points that Unicode 12.1 does not know, for directories that ignore case.
//!
//! The crate regex-syntax has the age of each (DerivedAge.txt of the Unicode Character Database).
//! An age never changes, so any version of the crate gives the same table.

#![allow(clippy::print_stdout, reason = "this is how a build script speaks to Cargo")]

use std::error::Error;
use std::fmt::Write;
use std::path::Path;

use regex_syntax::hir::{Class, HirKind};

/// Code points that are half of one in UTF-16.
const SURROGATES: std::ops::Range<u32> = 0xd800..0xe000;

fn main() -> Result<(), Box<dyn Error>> {
    let hir = regex_syntax::parse(r"\p{age:12.1}")?;
    let HirKind::Class(Class::Unicode(known)) = hir.kind() else {
        return Err("an age is no class of code points".into());
    };
    let (mut runs, mut next) = (Vec::new(), 0);
    for range in known.iter() {
        let (first, last) = (u32::from(range.start()), u32::from(range.end()));
        // No text holds a surrogate.
        if first > next && !SURROGATES.contains(&next) {
            runs.push((next, first - 1));
        }
        next = last + 1;
    }
    if next <= u32::from(char::MAX) {
        runs.push((next, u32::from(char::MAX)));
    }
    let mut table = format!("static UNASSIGNED: [(u32, u32); {}] = [\n", runs.len());
    for (first, last) in &runs {
        writeln!(table, "    ({first:#06x}, {last:#06x}),")?;
    }
    table.push_str("];\n");
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    std::fs::write(Path::new(&out).join("unassigned.rs"), table)?;
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
