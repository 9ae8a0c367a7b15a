//! A program of the gallery, as its program.toml describes it.
//!
//! Its commands are run by `sh`, with the arguments of the setting behind them. `GALLERY` is the
//! program's folder in the environment; what was installed for it is on the paths.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// A program, and how it is tried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GalleryProgram {
    /// The name of its folder.
    #[serde(skip)]
    pub folder: String,
    pub name: String,
    /// Prints the version on its first line.
    pub version: String,
    #[serde(default)]
    pub install: Sources,
    /// Makes what is there before the first cut.
    #[serde(default)]
    pub setup: Option<String>,
    /// Does operations, and prints a line after each that the program calls done.
    pub run: String,
    /// Looks at what is left, with the program's own means.
    pub judge: String,
    /// More options of `steadfast crash run`.
    #[serde(default)]
    pub options: Vec<String>,
    pub setting: Vec<ProgramSetting>,
}

/// Where a program comes from.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sources {
    /// A command that is there once it is installed, and its Debian package.
    #[serde(default)]
    pub apt: BTreeMap<String, String>,
    #[serde(default)]
    pub pip: Vec<String>,
    #[serde(default)]
    pub npm: Vec<String>,
    /// The folder is a module of Go: its program is built as `driver`.
    #[serde(default)]
    pub go: bool,
    /// The folder is a package of Rust with the program `driver`.
    #[serde(default)]
    pub cargo: bool,
    /// It is there already, of this.
    pub from: Option<String>,
}

/// A way to use a program, and what it promises then.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSetting {
    /// What is set, in the program's own words.
    pub name: String,
    /// It is what is had when nothing is set.
    #[serde(default)]
    pub is_default: bool,
    pub arguments: String,
    /// More options of `steadfast crash run`, for this one.
    #[serde(default)]
    pub options: Vec<String>,
    /// What its documents promise after a power cut.
    pub promise: String,
    /// Where they do.
    pub reference: String,
    /// Arguments of the control, where the promise rests on more than syncs: it does without that,
    /// too.
    pub control: Option<String>,
    /// What is to be said of what was found, and which promise it breaks.
    pub note: Option<String>,
}

impl GalleryProgram {
    /// All of a folder, by name.
    pub fn all(folder: &Path) -> anyhow::Result<Vec<GalleryProgram>> {
        let mut all = Vec::new();
        let entries = folder.read_dir().with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.join("program.toml").is_file() {
                all.push(GalleryProgram::read(&path)?);
            }
        }
        all.sort_by_key(|program| program.name.to_lowercase());
        Ok(all)
    }

    fn read(folder: &Path) -> anyhow::Result<GalleryProgram> {
        let file = folder.join("program.toml");
        let shown = || file.display().to_string();
        let text = std::fs::read_to_string(&file).with_context(shown)?;
        let mut program: GalleryProgram = toml::from_str(&text).with_context(shown)?;
        program.folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ensure!(!program.setting.is_empty(), "{}: no setting", shown());
        for setting in &program.setting {
            let link = &setting.reference;
            ensure!(link.starts_with("https://"), "{}: '{link}' is no link", shown());
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_can_be_read_and_their_settings_have_names_of_their_own() {
        let all = GalleryProgram::all(&crate::root().join(super::super::FOLDER)).unwrap();
        assert!(!all.is_empty());
        for program in &all {
            let mut names: Vec<&str> = program.setting.iter().map(|s| s.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), program.setting.len(), "{}", program.name);
        }
    }

    #[test]
    fn a_bad_file_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("program.toml"), text).unwrap();
            format!("{:#}", GalleryProgram::read(folder.path()).unwrap_err())
        };
        let head = "name = 'a'\nversion = 'b'\nrun = 'c'\njudge = 'd'\n";
        assert!(read(head).contains("setting"));
        assert!(read(&format!("{head}setting = []\n")).contains("no setting"));
        assert!(read(&format!("{head}jugde = 'e'\n")).contains("program.toml: "));
        let setting = "[[setting]]\nname = 'a'\narguments = ''\npromise = ''\nreference = 'x'\n";
        assert!(read(&format!("{head}{setting}")).contains("'x' is no link"));
    }
}
