//! A baseline: the findings that are known, in a file of the user's repository. It is of one
//! program, judge, file system and set of models, which it names.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steadfast_crash::persistence::Model;
use steadfast_crash::program::Command;
use steadfast_vfs::bounded;

use super::super::setup::Setup;
use super::super::show_command::quoted;
use super::findings::Finding;

const FORMAT: &str = "steadfast-crash-baseline";
const VERSION: i64 = 1;
/// Bytes of a baseline, at most.
const BYTES_MAX: u64 = 1 << 20;

const HEAD: &str = "\
# Findings of `steadfast crash run` that are known: with --baseline they do not make it fail.
# Remove those that are fixed, or write the file anew by --write-baseline. `why` is for you.

";

/// What a baseline is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedProgram {
    program: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judge_prints: Option<String>,
    file_system: String,
    models: Vec<String>,
}

/// A finding that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFinding {
    /// Of what is wrong, and of what else is wrong for the same reason.
    fingerprints: Vec<String>,
    /// In words.
    pub what: String,
    /// Why it is left as it is: the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    format: String,
    version: i64,
    of: TestedProgram,
    #[serde(default, rename = "finding")]
    findings: Vec<KnownFinding>,
}

/// A baseline that was read.
#[derive(Debug)]
pub struct Baseline {
    /// Where it is.
    pub path: PathBuf,
    known: Vec<KnownFinding>,
}

/// Why a file is not the baseline of a run.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It cannot be read.
    #[error("--baseline {path}: {why}; --write-baseline {path} makes one", path = .path.display())]
    Unread { path: PathBuf, why: std::io::Error },
    /// It is none, or damaged.
    #[error("--baseline {path}: {why}", path = .path.display())]
    Garbled { path: PathBuf, why: String },
    /// Somebody else's.
    #[error(
        "--baseline {path}: it is of another {what}: {theirs}, and this run has {ours}; name \
         another file, or write it anew by --write-baseline {path} alone", path = .path.display()
    )]
    Another { path: PathBuf, what: &'static str, theirs: String, ours: String },
}

impl TestedProgram {
    /// What a run tests.
    pub fn of(
        (program, client): (&[String], Option<&str>),
        judge: Option<&Command>,
        setups: &[Setup],
        models: &[Model],
    ) -> TestedProgram {
        let program: Vec<String> = program.iter().map(|word| quoted(word)).collect();
        TestedProgram {
            program: program.join(" "),
            client: client.map(str::to_owned),
            judge: judge.map(|judge| judge.command.clone()),
            judge_prints: judge.and_then(|judge| judge.prints.clone()),
            file_system: setups.iter().map(Setup::in_words).collect::<Vec<_>>().join("; "),
            models: models.iter().map(|model| model.name().to_owned()).collect(),
        }
    }

    /// What differs first: what it is, of this one, of the other one.
    fn difference(&self, other: &TestedProgram) -> Option<(&'static str, String, String)> {
        let all = |of: &TestedProgram| {
            let none = || "none".to_owned();
            [
                ("program", of.program.clone()),
                ("client", of.client.clone().unwrap_or_else(none)),
                ("judge", of.judge.clone().unwrap_or_else(none)),
                ("--judge-prints", of.judge_prints.clone().unwrap_or_else(none)),
                ("file system", of.file_system.clone()),
                ("--model", of.models.join(",")),
            ]
        };
        let mut both = all(self).into_iter().zip(all(other));
        let ((what, ours), (_, theirs)) = both.find(|(ours, theirs)| ours != theirs)?;
        Some((what, ours, theirs))
    }
}

impl Baseline {
    /// Reads a baseline, which must be of this program.
    ///
    /// # Errors
    /// It cannot be read, is none, or another one's.
    pub fn read(path: &Path, tested: &TestedProgram) -> Result<Baseline, BaselineError> {
        let path = path.to_owned();
        let garbled = |why: String| BaselineError::Garbled { path: path.clone(), why };
        // Opening a pipe would wait for its other end.
        match path.metadata() {
            Ok(about) if !about.is_file() => return Err(garbled("it is no file".into())),
            _ => {}
        }
        let text = bounded::text(&path, BYTES_MAX)
            .map_err(|why| BaselineError::Unread { path: path.clone(), why })?;
        // Its own text has the line.
        let in_words = |e: toml::de::Error| garbled(e.to_string().trim_end().to_owned());
        let table: toml::Table = text.parse().map_err(in_words)?;
        match (table.get("format").and_then(toml::Value::as_str), table.get("version")) {
            (Some(FORMAT), Some(toml::Value::Integer(VERSION))) => {}
            (Some(FORMAT), version) => {
                let version = version.map_or("none".into(), ToString::to_string);
                let what = format!("is of version {version}, and this program reads {VERSION}");
                return Err(garbled(format!("it {what}; write it anew by --write-baseline")));
            }
            _ => return Err(garbled(format!("line 1: format = \"{FORMAT}\" is missing"))),
        }
        let file: BaselineFile = toml::from_str(&text).map_err(in_words)?;
        if let Some((what, ours, theirs)) = tested.difference(&file.of) {
            return Err(BaselineError::Another { path, what, theirs, ours });
        }
        Ok(Baseline { path, known: file.findings })
    }

    /// The known finding that has one of these fingerprints.
    pub fn known(&self, fingerprints: &[String]) -> Option<&KnownFinding> {
        self.known.iter().find(|known| known.is_one_of(fingerprints))
    }

    /// Those that were not found.
    pub fn not_found(&self, findings: &[Finding<'_>]) -> Vec<&KnownFinding> {
        let found = |known: &&KnownFinding| {
            !findings.iter().any(|finding| known.is_one_of(&finding.fingerprints))
        };
        self.known.iter().filter(found).collect()
    }
}

impl KnownFinding {
    fn is_one_of(&self, fingerprints: &[String]) -> bool {
        self.fingerprints.iter().any(|known| fingerprints.contains(known))
    }
}

/// The text of a baseline of these findings and of those to be `kept`; reasons that `old` has stay.
pub fn text(
    tested: &TestedProgram,
    findings: &[Finding<'_>],
    old: Option<&Baseline>,
    kept: &[&KnownFinding],
) -> Result<String, toml::ser::Error> {
    let mut known: Vec<KnownFinding> = kept.iter().map(|known| (*known).clone()).collect();
    for finding in findings {
        if known.iter().any(|known| known.is_one_of(&finding.fingerprints)) {
            continue;
        }
        let before = old.and_then(|old| old.known(&finding.fingerprints));
        known.push(KnownFinding {
            fingerprints: finding.fingerprints.clone(),
            what: finding.message(),
            why: before.and_then(|known| known.why.clone()),
        });
    }
    let file = BaselineFile {
        format: FORMAT.into(),
        version: VERSION,
        of: tested.clone(),
        findings: known,
    };
    Ok(format!("{HEAD}{}", toml::to_string_pretty(&file)?))
}
