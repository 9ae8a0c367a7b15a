//! The command that shows a state, for a shell.

use std::path::Path;
use std::time::Duration;

use steadfast_crash::persistence::Model;
use steadfast_crash::program::Command;
use steadfast_crash::program::supervisor::Namespaces;

use super::setup::Fs;

/// Words for a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The command that reproduces a state.
pub fn show_command(
    recording: &Path,
    (state, model): (u64, Option<Model>),
    fs: Fs,
    judge: Option<&Command>,
) -> String {
    let file = quoted(&recording.display().to_string());
    let mut line = format!("steadfast crash show {file}");
    if let Some(model) = model {
        line.push_str(&format!(" --model {}", model.name()));
    }
    line.push_str(&format!(" --cut {state}"));
    if matches!(fs, Fs::Kernel(_)) {
        line.push_str(" --kernel");
    }
    if let Some(Command { command, prints, limit, supervisor }) = judge {
        line.push_str(&format!(" --judge {}", quoted(command)));
        if let Some(prints) = prints {
            line.push_str(&format!(" --judge-prints {}", quoted(prints)));
        }
        if *limit != Duration::from_secs(60) {
            line.push_str(&format!(" --judge-limit {}", limit.as_secs_f64()));
        }
        // As it was judged, on another machine, too.
        if supervisor.namespaces() == Namespaces::Shared {
            line.push_str(" --judge-namespaces never");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use steadfast_crash::program::supervisor::Supervisor;
    use steadfast_peers::KernelFs;

    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for (text, expected) in [("run.crash", "run.crash"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(text), expected);
        }
        let judge = Command {
            command: "grep -q x config".into(),
            prints: Some("ok".into()),
            limit: Duration::from_secs(5),
            supervisor: Supervisor::new("steadfast", Namespaces::Shared),
        };
        assert_eq!(
            show_command(Path::new("/tmp/r"), (7, None), Fs::Kernel(KernelFs::Xfs), Some(&judge)),
            "steadfast crash show /tmp/r --cut 7 --kernel --judge 'grep -q x config' \
             --judge-prints ok --judge-limit 5 --judge-namespaces never"
        );
    }
}
