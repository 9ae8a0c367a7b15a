//! How what was run has ended: the program, or a server and its client.

use std::process::ExitStatus;
use std::time::Duration;

/// How long a server has to end once it was asked to.
pub const SERVER_GRACE: Duration = Duration::from_secs(10);

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself.
    By(ExitStatus),
    /// Ctrl-C.
    Interrupted,
    /// A client that took longer than this.
    Late(Duration),
    /// A client that had no server any more, after so long.
    WithoutServer(Duration),
}

/// How all that was run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnd {
    /// Its status.
    pub status: ExitStatus,
    /// When, and why.
    pub cause: EndCause,
    /// What it printed last.
    pub last: Vec<String>,
}

/// Why a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
