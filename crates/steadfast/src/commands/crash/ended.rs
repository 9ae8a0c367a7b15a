//! How what was run has ended: the program, or a server and its client.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_crash::program::Command;

/// How long a server has to end once it was asked to.
pub const SERVER_GRACE: Duration = Duration::from_secs(10);

/// Where a recording has it.
const ABOUT: &str = "ended";

/// What a recording keeps of the run beside what was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEnd {
    /// How it ended.
    pub ended: RunEnd,
    /// Failures that were asked for and whose calls never came, in words.
    pub never_came: Vec<String>,
    /// Lines that were too many to be recorded.
    pub left_out: u64,
    /// What the judge has said of what the program left, without any cut.
    pub judged: Option<JudgedEnd>,
}

/// What a judge has said of what the program left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedEnd {
    /// Its command.
    pub command: String,
    /// What it must print.
    pub prints: Option<String>,
    /// What it has against it.
    pub bad: Option<String>,
}

impl RecordedEnd {
    /// For the recording.
    pub fn about(&self) -> serde_json::Result<(String, String)> {
        Ok((ABOUT.into(), serde_json::to_string(self)?))
    }

    /// What this judge has against what the program left, as far as it was asked.
    pub fn said_by(&self, judge: &Command) -> Option<String> {
        let said = self.judged.as_ref()?;
        let is_same = (&said.command, &said.prints) == (&judge.command, &judge.prints);
        said.bad.clone().filter(|_| is_same)
    }

    /// From a recording.
    ///
    /// # Errors
    /// It has none, as those of before it was kept.
    pub fn from_about(about: &BTreeMap<String, String>) -> Result<RecordedEnd, String> {
        let text = about.get(ABOUT).ok_or(
            "the recording does not say how the program ended: an older program has made it; \
             record it again",
        )?;
        serde_json::from_str(text).map_err(|e| format!("how the program ended: {e}"))
    }
}

/// An exit status, as the system has it.
mod raw {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(status: &ExitStatus, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i32(status.into_raw())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ExitStatus, D::Error> {
        i32::deserialize(from).map(ExitStatus::from_raw)
    }
}

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramEnd {
    /// By itself.
    By(#[serde(with = "raw")] ExitStatus),
    /// Ctrl-C.
    Interrupted,
    /// A client that took longer than this.
    Late(Duration),
    /// A client that had no server any more, after so long.
    WithoutServer(Duration),
}

/// How all that was run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The program; with a server its client.
    pub program: ProgramEnd,
    /// The server.
    pub server: Option<ServerEnd>,
}

impl RunEnd {
    /// What failed, if anything did: what was to be tested may not have been done.
    pub fn failed(&self) -> Option<String> {
        let has_failed = match self.program {
            ProgramEnd::By(status) => !status.success(),
            ProgramEnd::Interrupted => false,
            ProgramEnd::Late(_) | ProgramEnd::WithoutServer(_) => true,
        };
        let ended = self.program.in_words();
        has_failed.then(|| match &self.server {
            None => format!("the program {ended}"),
            Some(server) if server.has_failed() => {
                format!("the server {}, and the client {ended}", server.in_words())
            }
            Some(_) => format!("the client {ended}"),
        })
    }

    /// For people, in lines.
    pub fn lines(&self) -> Vec<String> {
        let ended = self.program.in_words();
        let Some(server) = &self.server else { return vec![format!("the program {ended}")] };
        let mut lines =
            vec![format!("the client {ended}"), format!("the server {}", server.in_words())];
        if server.has_failed() {
            lines.extend(server.last.iter().map(|line| format!("| {line}")));
        }
        lines
    }
}

impl ProgramEnd {
    /// In words.
    pub fn in_words(&self) -> String {
        match self {
            ProgramEnd::By(status) => in_words(*status),
            ProgramEnd::Interrupted => "was stopped".into(),
            ProgramEnd::Late(limit) => {
                format!("was ended after {} s (--client-limit)", limit.as_secs_f64())
            }
            ProgramEnd::WithoutServer(after) => {
                format!("was ended {} s after its server", after.as_secs())
            }
        }
    }
}

/// How a process ended.
pub fn in_words(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with status {code}"),
        None => format!("ended: {status}"),
    }
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEnd {
    /// Its status.
    #[serde(with = "raw")]
    pub status: ExitStatus,
    /// When, and why.
    pub cause: EndCause,
    /// What it printed last.
    pub last: Vec<String>,
}

/// Why a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// By itself, before its client did.
    BeforeClient,
    /// By itself, before it was asked to.
    AfterClient,
    /// It was asked to.
    Asked,
    /// It was asked to, did not, and was killed.
    Killed,
}

impl ServerEnd {
    /// In one line.
    pub fn in_words(&self) -> String {
        let status = in_words(self.status);
        match self.cause {
            EndCause::BeforeClient => format!("{status} before the client did"),
            EndCause::AfterClient => format!("{status} after the client, unasked"),
            EndCause::Asked => format!("{status} when it was asked to end"),
            EndCause::Killed => {
                format!("did not end within {} s of SIGTERM and was killed", SERVER_GRACE.as_secs())
            }
        }
    }

    /// Whether its client had to do without it, and that was no orderly end.
    pub fn has_failed(&self) -> bool {
        self.cause == EndCause::BeforeClient && !self.status.success()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_recording_keeps_how_it_ended() {
        let server = ServerEnd {
            status: ExitStatus::from_raw(0x0100),
            cause: EndCause::BeforeClient,
            last: vec!["oops".into()],
        };
        let program = ProgramEnd::WithoutServer(Duration::from_secs(3));
        for ended in [
            RunEnd { program: ProgramEnd::By(ExitStatus::from_raw(9)), server: None },
            RunEnd { program, server: Some(server) },
        ] {
            let judged = JudgedEnd { command: "true".into(), prints: None, bad: Some("b".into()) };
            let never_came = vec!["a".into()];
            let end = RecordedEnd { ended, never_came, left_out: 7, judged: Some(judged) };
            let about: BTreeMap<_, _> = [end.about().unwrap()].into();
            assert_eq!(RecordedEnd::from_about(&about), Ok(end));
        }
        assert!(RecordedEnd::from_about(&BTreeMap::new()).unwrap_err().contains("record it again"));
    }
}
