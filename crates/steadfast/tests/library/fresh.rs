//! The program of the crate page, in a project of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The first example of the crate page.
fn program() -> String {
    let page = include_str!("../../src/lib.rs");
    let lines = page.lines().map(|line| line.strip_prefix("//!").unwrap_or_default());
    let body = lines.skip_while(|line| line.trim() != "```").skip(1);
    let body = body.take_while(|line| line.trim() != "```");
    body.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

#[test]
fn the_first_program_is_short_and_the_readme_has_its_core() {
    let (program, readme) = (program(), include_str!("../../../../README.md"));
    let code = program.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("use"));
    assert!(code.count() <= 20, "{program}");
    let core = program.lines().skip_while(|line| !line.contains("Image::create"));
    // README has it up to where the letter is safe.
    for line in core.take_while(|line| !line.contains("drop(file)")) {
        assert!(readme.contains(line.trim()), "README has no {line:?}");
    }
}

/// A first build takes more than a minute.
#[test]
fn a_project_of_its_own_builds_and_runs_it() {
    if std::env::var_os("STEADFAST_SOAK").is_none() {
        return;
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let manifest = format!(
        "[package]\nname = \"steadfast-user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nsteadfast = {{ path = {own:?}, default-features = false }}\n\n\
         [workspace]\n"
    );
    fs::create_dir(at("src")).unwrap();
    fs::write(at("Cargo.toml"), manifest).unwrap();
    fs::write(at("src/main.rs"), program()).unwrap();
    fs::copy(own.join("../../Cargo.lock"), at("Cargo.lock")).unwrap();
    let cargo = |arguments: &[&str]| {
        let out = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(folder.path())
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "cargo {arguments:?}: {errors}");
        String::from_utf8(out.stdout).unwrap()
    };
    cargo(&["run", "--offline", "--quiet"]);
    // Nothing of the command line comes along.
    let tree = cargo(&["tree", "--offline", "--prefix", "none", "--edges", "normal"]);
    for foreign in ["clap", "ratatui", "io-uring", "serde_json", "indicatif"] {
        assert!(!tree.lines().any(|line| line.starts_with(&format!("{foreign} "))), "{tree}");
    }
}
