//! Puts the results that are kept in docs/results into the program; there may be none.

// What a build script prints, Cargo reads.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    // A folder that is not there would always count as changed.
    let watched = if folder.is_dir() { folder.clone() } else { folder.join("..") };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "json") {
            names.push(path.canonicalize()?);
        }
    }
    names.sort();
    let each = names.iter().map(|path| format!("    include_str!({path:?}),\n"));
    let list = format!("const STORED: &[&str] = &[\n{}];\n", each.collect::<String>());
    // OK to expect: Cargo sets it.
    let out = env::var("OUT_DIR").expect("OUT_DIR");
    fs::write(Path::new(&out).join("stored.rs"), list)
}
