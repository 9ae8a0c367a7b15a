//! The files that a judge's command names: it is the same judge on all machines if they are.

use std::path::PathBuf;

/// What ends a command of a shell's, or begins one.
const BETWEEN_COMMANDS: [char; 8] = [';', '|', '&', '(', ')', '`', '{', '\n'];
/// What stands around words.
const AROUND_WORDS: [char; 5] = ['\'', '"', '<', '>', '='];
/// Words behind which a command follows.
const BEFORE_COMMANDS: [&str; 9] =
    ["!", "if", "then", "else", "elif", "while", "until", "do", "exec"];

/// The files of a shell's command that can be seen in it: those that are named from the root, and
/// the programs that it finds in the folders of PATH. (What these read in turn is not seen.)
pub fn files_of(command: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|f| f.is_absolute()).collect();
    files_in(command, &folders)
}

fn files_in(command: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for part in command.split(BETWEEN_COMMANDS) {
        let mut is_program = true;
        for token in part.split_whitespace() {
            // Neither the value of a variable nor where to read or print is the program yet.
            let is_before = token.contains(['=', '<', '>']);
            for word in token.split(AROUND_WORDS).filter(|word| !word.is_empty()) {
                let found = match word.contains('/') {
                    true => Some(PathBuf::from(word)).filter(|file| file.is_absolute()),
                    false if is_program && !is_before => in_folders(word, folders),
                    false => None,
                };
                files.extend(found.filter(|file| file.is_file()));
            }
            is_program = is_program && (is_before || BEFORE_COMMANDS.contains(&token));
        }
    }
    files.sort();
    files.dedup();
    files
}

fn in_folders(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_names_its_program_and_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["check", "rows", "old", "list"]
            .iter()
            .for_each(|name| std::fs::write(at(name), "").unwrap());
        let list = at("list").display().to_string();
        let files = |command: &str| files_in(command, &[folder.path().to_owned()]);
        assert_eq!(files("check old"), [at("check")]);
        assert_eq!(
            files(&format!("if ! rows <'{list}'; then check; fi")),
            ["check", "list", "rows"].map(at)
        );
        assert_eq!(files(&format!("X={list} check && ./old /nowhere")), ["check", "list"].map(at));
        assert!(files("cat old; echo \"$(nobody)\"").is_empty());
    }
}
