//! Puts into the program what lies in folders: the scenarios, the parts, and the results that are
//! kept in docs/results, of which there may be none.

// What a build script prints, Cargo reads.
#![allow(clippy::print_stdout)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    for folder in ["scenarios", "parts"] {
        let mut all = String::new();
        let files = files(folder, "toml")?;
        if files.is_empty() {
            return Err(io::Error::other(format!(
                "there is no file {folder}/*.toml beside build.rs"
            )));
        }
        for path in files {
            let name = path.file_stem().unwrap_or_default();
            // OK to ignore: writing to a string does not fail.
            let _ = writeln!(all, "    ({name:?}, include_str!({path:?})),");
        }
        let all = format!("const EMBEDDED: &[(&str, &str)] = &[\n{all}];\n");
        write(&format!("{folder}.rs"), &all)?;
    }
    let mut results = String::new();
    for path in files("../../docs/results", "json")? {
        let _ = writeln!(results, "    include_str!({path:?}),");
    }
    write("stored.rs", &format!("const STORED: &[&str] = &[\n{results}];\n"))
}

/// The files of a folder with this extension, by name. A folder that is not there has none.
fn files(folder: &str, extension: &str) -> io::Result<Vec<PathBuf>> {
    // Not env!: a script that was built in another checkout, with the same target folder, would
    // look there.
    // OK to expect: Cargo sets it.
    let own = env::var("CARGO_MANIFEST_DIR").expect("CARGO_MANIFEST_DIR");
    let folder = Path::new(&own).join(folder);
    // A folder that is not there would always count as changed.
    let watched = if folder.is_dir() { folder.clone() } else { folder.join("..") };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension) {
            paths.push(path.canonicalize()?);
        }
    }
    paths.sort();
    Ok(paths)
}

fn write(name: &str, text: &str) -> io::Result<()> {
    // OK to expect: Cargo sets it.
    let out = env::var("OUT_DIR").expect("OUT_DIR");
    fs::write(Path::new(&out).join(name), text)
}
