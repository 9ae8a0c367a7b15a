//! The text of a job file: sections in order, each with the lines of `[global]` above it.
//!
//! As in fio a `;` or `#` begins a comment anywhere in a line, a name without `=` stands for 1,
//! sections may have the same name, and `[global]` may come several times: it counts for the
//! sections behind it. `include FILE` puts a file's lines in its place.

use std::io::BufRead;
use std::sync::Arc;

use super::wrong::{JobFileError, LineOrigin};

/// Lines of a job file with all that it includes, at most.
const LINES_MAX: usize = 100_000;
/// Files within files.
const INCLUDES_MAX: u32 = 16;
/// Bytes of a value after `${NAME}` has been replaced.
const VALUE_MAX: usize = 64 << 10;

/// Why what a job file refers to is not there.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// Job files have none here; says what.
    #[error("{0}")]
    NotHere(&'static str),
    /// A variable that is no text.
    #[error("it is no text in UTF-8")]
    NotText,
    /// A file that cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What a job file refers to.
pub trait JobSurroundings {
    /// A variable of the environment.
    ///
    /// # Errors
    /// There is no environment here, or it is no text.
    fn variable(&self, name: &str) -> Result<String, ReferenceError>;

    /// The text of a file that `from` includes.
    ///
    /// # Errors
    /// It cannot be read.
    fn included(&self, name: &str, from: &str) -> Result<String, ReferenceError>;

    /// A log that a job replays.
    ///
    /// # Errors
    /// It cannot be opened.
    fn log(&self, name: &str) -> Result<Box<dyn BufRead>, ReferenceError>;

    /// What `$pagesize`, `$mb_memory` and `$ncpus` stand for.
    fn keyword(&self, keyword: &str) -> Option<u64>;
}

/// `name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSetting {
    /// Where it says so.
    pub at: LineOrigin,
    /// As it is written.
    pub name: String,
    /// `None`: a name alone.
    pub value: Option<String>,
}

/// A job: a section, and the lines above it that count for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSection {
    /// In brackets.
    pub name: String,
    /// Where.
    pub at: LineOrigin,
    /// Of the `[global]` sections above it, in order.
    pub globals: Vec<JobSetting>,
    /// Its own.
    pub settings: Vec<JobSetting>,
}

/// Reads a job file; `file` is what its errors call it.
///
/// # Errors
/// All lines that are wrong. Whether their options exist is not looked at.
pub fn sections(
    text: &str,
    file: &str,
    around: &dyn JobSurroundings,
) -> Result<Vec<JobSection>, JobFileError> {
    let mut reader = JobReader {
        around,
        globals: Vec::new(),
        sections: Vec::new(),
        section: None,
        lines: 0,
        wrong: JobFileError::default(),
    };
    reader.file(text, &Arc::from(file), 0);
    if reader.wrong.lines.is_empty() && reader.sections.is_empty() {
        let at = LineOrigin { file: file.into(), line: 1 };
        reader.wrong.note(&at, "there is no job; a job is a section: [name]");
    }
    reader.wrong.or(reader.sections)
}

/// The section that the next line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionKind {
    Global,
    Job,
}

struct JobReader<'a> {
    around: &'a dyn JobSurroundings,
    globals: Vec<JobSetting>,
    sections: Vec<JobSection>,
    section: Option<SectionKind>,
    lines: usize,
    wrong: JobFileError,
}

impl JobReader<'_> {
    fn file(&mut self, text: &str, file: &Arc<str>, depth: u32) {
        for (number, line) in (1u32..).zip(text.lines()) {
            let at = LineOrigin { file: Arc::clone(file), line: number };
            self.lines += 1;
            if self.lines > LINES_MAX {
                return self.wrong.note(&at, format!("there are more than {LINES_MAX} lines"));
            }
            let line = line.split([';', '#']).next().unwrap_or_default().trim();
            match line.strip_prefix("include") {
                _ if line.is_empty() => {}
                Some(name) if name.starts_with(char::is_whitespace) => {
                    self.include(name.trim(), &at, depth);
                }
                _ if line.starts_with('[') => self.head(line, at, depth),
                _ => self.setting(line, at),
            }
        }
    }

    fn include(&mut self, name: &str, at: &LineOrigin, depth: u32) {
        if depth >= INCLUDES_MAX {
            return self
                .wrong
                .note(at, format!("files include each other over {INCLUDES_MAX} deep"));
        }
        match self.around.included(name, &at.file) {
            Ok(text) => self.file(&text, &Arc::from(name), depth + 1),
            Err(why) => self.wrong.note(at, format!("include {name}: {why}")),
        }
    }

    fn head(&mut self, line: &str, at: LineOrigin, depth: u32) {
        let name = line[1..].strip_suffix(']').map(str::trim);
        match name {
            None | Some("") => self.wrong.note(&at, format!("'{line}' is no section: [name]")),
            Some(_) if depth > 0 => self.wrong.note(&at, "a file that is included has no sections"),
            Some(name) if name.eq_ignore_ascii_case("global") => {
                self.section = Some(SectionKind::Global);
            }
            Some(name) => {
                self.section = Some(SectionKind::Job);
                let (name, globals) = (name.to_owned(), self.globals.clone());
                self.sections.push(JobSection { name, at, globals, settings: Vec::new() });
            }
        }
    }

    fn setting(&mut self, line: &str, at: LineOrigin) {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            let what = format!("'{line}' is no option: name=value, or a name alone");
            return self.wrong.note(&at, what);
        }
        let value = match value.map(|value| self.replaced(value)).transpose() {
            Ok(value) => value,
            Err(why) => return self.wrong.note(&at, format!("option '{name}': {why}")),
        };
        let setting = JobSetting { name: name.to_owned(), value, at };
        match (self.section, self.sections.last_mut()) {
            (Some(SectionKind::Global), _) => self.globals.push(setting),
            (Some(SectionKind::Job), Some(section)) => section.settings.push(setting),
            _ => self.wrong.note(&setting.at, "it stands before the first section"),
        }
    }

    /// Puts in what `${NAME}` and the keywords stand for.
    fn replaced(&self, value: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, behind) = after.split_once('}').ok_or("`${` without `}`")?;
            text += before;
            let variable = self.around.variable(name);
            text += &variable.map_err(|e| format!("${{{name}}}: {e}"))?;
            rest = behind;
            if text.len() > VALUE_MAX {
                return Err(format!("it is longer than {VALUE_MAX} bytes"));
            }
        }
        text += rest;
        for keyword in ["$pagesize", "$mb_memory", "$ncpus"] {
            if text.contains(keyword) {
                let known = self.around.keyword(keyword);
                let number = known.ok_or_else(|| format!("{keyword} is not known here"))?;
                text = text.replace(keyword, &number.to_string());
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An environment of a few names, and one file.
    pub(in super::super) struct Around;

    impl JobSurroundings for Around {
        fn variable(&self, name: &str) -> Result<String, ReferenceError> {
            Ok(if name == "SIZE" { "64m".into() } else { String::new() })
        }

        fn included(&self, name: &str, _: &str) -> Result<String, ReferenceError> {
            match name {
                "common" => Ok("bs=8k\n".into()),
                "loop" => Ok("include loop".into()),
                "sections" => Ok("[a]".into()),
                _ => Err(ReferenceError::NotHere("no such file")),
            }
        }

        fn log(&self, _: &str) -> Result<Box<dyn BufRead>, ReferenceError> {
            Err(ReferenceError::NotHere("no such file"))
        }

        fn keyword(&self, keyword: &str) -> Option<u64> {
            (keyword == "$ncpus").then_some(4)
        }
    }

    fn read(text: &str) -> Result<Vec<JobSection>, String> {
        sections(text, "a.fio", &Around).map_err(|e| e.to_string())
    }

    fn words(settings: &[JobSetting]) -> Vec<String> {
        let word = |s: &JobSetting| match &s.value {
            Some(value) => format!("{}:{}={value}", s.at.line, s.name),
            None => format!("{}:{}", s.at.line, s.name),
        };
        settings.iter().map(word).collect()
    }

    #[test]
    fn a_section_has_the_globals_above_it() {
        let text = "; x\n[global]\nbs = 4k # small\ninclude common\n[a]\nsize=${SIZE}\nthread\n\
                    [GLOBAL]\nnumjobs=$ncpus\n[a]\nfilename=${NONE}x";
        let sections = read(text).unwrap();
        assert_eq!(words(&sections[0].globals), ["3:bs=4k", "1:bs=8k"]);
        assert_eq!(words(&sections[0].settings), ["6:size=64m", "7:thread"]);
        assert_eq!(words(&sections[1].globals), ["3:bs=4k", "1:bs=8k", "9:numjobs=4"]);
        assert_eq!(
            (&*sections[1].name, words(&sections[1].settings)),
            ("a", vec!["11:filename=x".into()])
        );
        assert_eq!(sections[0].globals[1].at.to_string(), "common:1");
    }

    #[test]
    fn all_wrong_lines_are_named() {
        let text =
            "bs=4k\n[]\n[a\n[j]\nbs 4k\nsize=${X\n=3\ninclude none\ninclude sections\nx=$mb_memory";
        assert_eq!(
            read(text).unwrap_err(),
            "a.fio:1: it stands before the first section\n\
             a.fio:2: '[]' is no section: [name]\n\
             a.fio:3: '[a' is no section: [name]\n\
             a.fio:5: 'bs 4k' is no option: name=value, or a name alone\n\
             a.fio:6: option 'size': `${` without `}`\n\
             a.fio:7: '=3' is no option: name=value, or a name alone\n\
             a.fio:8: include none: no such file\n\
             sections:1: a file that is included has no sections\n\
             a.fio:10: option 'x': $mb_memory is not known here"
        );
        assert!(read("include loop").unwrap_err().contains("over 16 deep"));
        assert!(read("# nothing\n").unwrap_err().contains("there is no job"));
        let many = "[j]\n".to_owned() + &"=\n".repeat(60);
        assert!(read(&many).unwrap_err().ends_with("and 10 lines more"));
    }
}
