//! `--stacks` of programs whose threads are killed, stopped, replaced and traced while they are
//! held: they see nothing of it, and nothing hangs.

use super::lab::Lab;
use super::source_lines::{built, printed};

#[test]
fn a_program_sees_nothing_of_it() {
    let Some(lab) = Lab::new() else { return };
    let source = include_str!("held_program.c");
    let app = built(&lab, ("held.c", source), &["cc", "-g", "-pthread"]);
    let said = printed(&lab, &["--stacks", "--model", "none"], &[&app]);
    assert!(said.contains("nothing seen\n"), "{said}");
    let traced = "note: no stack of 1";
    let why = "their threads were traced already";
    assert!(said.lines().any(|l| l.starts_with(traced) && l.contains(why)), "{said}");
}

#[test]
fn who_is_traced_already_is_left_alone() {
    let Some(lab) = Lab::new() else { return };
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        return;
    }
    let words = ["strace", "-f", "-o", "/dev/null", "sh", "-c", "echo new > a; mv a b"];
    let said = printed(&lab, &["--stacks"], &words);
    assert!(said.contains("calls: their threads were traced already"), "{said}");
    assert!(said.contains("to fix it, add fsync of a") && !said.contains("\n    at "), "{said}");
}

#[test]
fn an_interpreter_is_called_one() {
    let Some(lab) = Lab::new() else { return };
    let words = "open('a', 'w').write('new'); __import__('os').rename('a', 'b')";
    let said = printed(&lab, &["--stacks"], &["python3", "-c", words]);
    assert_eq!(said.matches(": an interpreter: functions are its own").count(), 1, "{said}");
}
