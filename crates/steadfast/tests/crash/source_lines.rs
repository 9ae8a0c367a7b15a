//! `--stacks`: findings name the source lines of the program's calls.

use std::process::Command;

use serde_json::Value;

use super::lab::{Lab, text};

/// Both rename; only one syncs before.
const TWO: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void put(const char *name, int sync) {
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    if (fd < 0 || write(fd, "new text\n", 9) != 9 || (sync && fsync(fd))) _exit(3);
    close(fd);
}

__attribute__((noinline)) int save_settings(void) {
    put("settings.new", 1);
    return rename("settings.new", "settings") - 1; /* line 14 */
}

__attribute__((noinline)) int save_index(void) {
    put("index.new", 0);
    return rename("index.new", "index") - 1; /* line 19 */
}

int main(void) {
    return save_settings() + save_index() + 2;
}
"#;

const RUST: &str = r#"
struct Store;
impl Store {
    fn save(&self) -> std::io::Result<()> {
        std::fs::write("index.new", "new text")?;
        std::fs::rename("index.new", "index") // line 6
    }
}
fn main() {
    std::thread::spawn(|| Store.save()).join().unwrap().unwrap();
}
"#;

const GO: &str = r#"package main

import "os"

func save() error {
	if err := os.WriteFile("index.new", []byte("new text"), 0o644); err != nil {
		return err
	}
	return os.Rename("index.new", "index") // line 9
}

func main() {
	if save() != nil {
		os.Exit(3)
	}
}
"#;

/// Builds a program in the lab's folder; its path.
pub fn built(lab: &Lab, source: (&str, &str), compiler: &[&str]) -> String {
    lab.script(source.0, source.1);
    let (folder, app) = (lab.path(""), lab.path("app").display().to_string());
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-o", &app, source.0]).current_dir(folder);
    let done = command.env("HOME", lab.path("")).output().unwrap();
    assert!(done.status.success(), "{compiler:?}: {}", text(&done.stderr));
    app
}

/// What is printed of a run, and what is noted.
pub fn printed(lab: &Lab, more: &[&str], program: &[&str]) -> String {
    let quick = ["run", "--linger", "0", "--cuts", "none"];
    let out = lab.crash(&[&quick[..], more, &["--"], program].concat());
    assert!(matches!(out.status.code(), Some(0 | 1)), "{:?}\n{}", out.status, text(&out.stderr));
    text(&out.stdout) + &text(&out.stderr)
}

#[test]
fn the_line_is_that_of_the_call_that_lacks_a_sync() {
    let Some(lab) = Lab::new() else { return };
    let mut said = String::new();
    for flags in [&["-g"][..], &["-g", "-O2", "-fomit-frame-pointer"]] {
        let app = built(&lab, ("two.c", TWO), &[&["cc"], flags].concat());
        said = printed(&lab, &["--stacks", "--record", "run.crash"], &[&app]);
        assert!(said.contains("    at two.c:19 (save_index)\n    to fix it, add fsync"), "{said}");
        assert!(said.contains("called at two.c:23 (main)"), "{said}");
        assert!(!said.contains(":14 ") && !said.contains("note:"), "{said}");
    }
    // The recording has them, wherever it is shown.
    std::fs::remove_file(lab.path("app")).unwrap();
    let cut = said.lines().find_map(|line| line.rsplit_once("--cut ")).unwrap().1;
    let shown = lab.crash(&["show", "run.crash", "--model", "posix", "--cut", cut]);
    let shown = text(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("rename index.new to index ... had not returned, at /"), "{shown}");
    assert!(shown.contains("two.c:19 (save_index)"), "{shown}");
}

#[test]
fn reports_have_it() {
    let Some(lab) = Lab::new() else { return };
    let app = built(&lab, ("two.c", TWO), &["cc", "-g"]);
    let quick = ["--stacks", "--cuts", "none", "--linger", "0", "--annotations", "github"];
    let files = ["--sarif", "out.sarif", "--junit", "out.xml", "--json", "--", &app];
    let out = lab.crash(&[&["run"], &quick[..], &files].concat());
    let errors = text(&out.stderr);
    assert!(errors.contains("::error file=two.c,line=19,title="), "{errors}");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let stack = report["by_calls"]["findings"][0]["stack"].as_array().unwrap();
    let of = |function: &str| stack.iter().find(|frame| frame["function"] == function).unwrap();
    assert_eq!(of("save_index")["line"], 19, "{stack:#?}");
    assert_eq!(of("main")["module"], *app);
    assert!(of("main")["offset"].as_u64().unwrap() > 0);
    let sarif: Value =
        serde_json::from_slice(&std::fs::read(lab.path("out.sarif")).unwrap()).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "two.c", "{place}");
    assert_eq!(place["region"]["startLine"], 19, "{place}");
    let junit = std::fs::read_to_string(lab.path("out.xml")).unwrap();
    assert!(junit.contains("at two.c:19 (save_index)"), "{junit}");
}

#[test]
fn without_it_no_line_is_named() {
    let Some(lab) = Lab::new() else { return };
    let app = built(&lab, ("two.c", TWO), &["cc", "-g"]);
    let said = printed(&lab, &[], &[&app]);
    assert!(said.contains("add fsync of index.new") && !said.contains("two.c"), "{said}");
}

#[test]
fn without_debug_information_there_is_a_function_or_an_offset() {
    let Some(lab) = Lab::new() else { return };
    let app = built(&lab, ("two.c", TWO), &["cc"]);
    let said = printed(&lab, &["--stacks"], &[&app]);
    assert!(said.contains("    at save_index+0x"), "{said}");
    assert_eq!(said.matches("app: no lines are known: build it with -g").count(), 1, "{said}");
    let app = built(&lab, ("two.c", TWO), &["cc", "-s"]);
    let said = printed(&lab, &["--stacks"], &["sh", "-c", &app]);
    assert!(said.contains("    at 0x") && said.contains("/app\n"), "{said}");
}

#[test]
fn rust_and_go_have_lines_of_their_own_code() {
    let Some(lab) = Lab::new() else { return };
    let app = built(&lab, ("app.rs", RUST), &["rustc", "-g", "-O"]);
    let said = printed(&lab, &["--stacks"], &["sh", "-c", &app]);
    assert!(said.contains("    at app.rs:6 (app::Store::save)"), "{said}");
    let app = built(&lab, ("app.go", GO), &["go", "build"]);
    let said = printed(&lab, &["--stacks"], &[&app]);
    assert!(said.contains("    at app.go:9 (main.save)"), "{said}");
}

#[test]
fn the_kernels_file_systems_are_watched_too() {
    let Some(lab) = Lab::new() else { return };
    let app = built(&lab, ("two.c", TWO), &["cc", "-g"]);
    let said = printed(&lab, &["--stacks", "--fs", "kernel-ext4"], &[&app]);
    assert!(said.contains("    at two.c:19 (save_index)"), "{said}");
}
