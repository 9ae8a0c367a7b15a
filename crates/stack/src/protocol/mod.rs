//! The protocol of the host's socket: one request and one reply per connection, each a line of
//! JSON.
//!
//! A request is `{"do": "VERB", ...}`, a reply `{"ok": true, ...}` or `{"ok": false, "error":
//! "...", "used_wrongly": false, "kind": "refused", "about": "d10"}`: the envelope of a mount's
//! control socket.
//!
//! Devices, RAM disks and volumes share one name space. An alias is accepted wherever a name is.

mod request;
mod status;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast_volume::ScrubReport;

pub use request::{
    Assemble, Create, CreateRamDisk, Destroy, Grow, Leg, NameRequest, NewComponent, NewMount,
    NewName, Replace, Request, Resync, Scrub, Set,
};
pub use status::{
    Alias, Counters, DeviceKind, DeviceStatus, LegStatus, MirrorStatus, MountStatus, Progress,
    RegionCounts, RetiredMirror, StackCounters, StackStatus, VolumeStatus,
};

/// Longest request and reply in bytes.
pub const LINE_MAX: u64 = 4 << 20;

/// What a host answers to a request that it has done. Which fields are there depends on the
/// request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Of [`Request::Status`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackStatus>,
    /// Of [`Request::Counters`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<StackCounters>,
    /// The place of a leg that was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<usize>,
    /// Bytes: of a volume that was made or has grown; copied by a resync; given up with a leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Of [`Request::Scrub`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrubbed: Option<ScrubReport>,
    /// A kernel block device that was made, or removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Sentences for people: what is not as they might think.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Why a request was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// There is nothing of that name.
    NotFound,
    /// It is in use: open, a member of something, or somebody else's.
    Busy,
    /// It cannot be done as things are: the last good copy, a resync that is not complete. Nothing
    /// was changed.
    Refused,
    /// The request makes no sense: a bad name, a number out of range.
    UsedWrongly,
    /// What was asked for is not implemented.
    Unsupported,
    /// A device, the disk of the configuration, or the machine failed.
    Failed,
}

/// A request that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error}")]
pub struct Refusal {
    /// Why, for programs.
    pub kind: RefusalKind,
    /// Why, for people.
    pub error: String,
    /// The name of what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Result of what was asked.
pub type Result<T> = std::result::Result<T, Refusal>;

impl RefusalKind {
    /// A refusal in words.
    pub fn because(self, error: impl Into<String>) -> Refusal {
        Refusal { kind: self, error: one_line(&error.into()), about: None }
    }

    /// The same, about something with a name.
    pub fn about(self, name: &str, what: impl std::fmt::Display) -> Refusal {
        let error = one_line(&format!("{name}: {what}"));
        Refusal { kind: self, error, about: Some(name.to_owned()) }
    }
}

impl Refusal {
    /// With something more to say.
    pub(crate) fn with(self, more: &str) -> Refusal {
        Refusal { error: format!("{}; {more}", self.error), ..self }
    }

    /// Whether the caller could have known.
    pub fn is_misuse(&self) -> bool {
        !matches!(self.kind, RefusalKind::Failed | RefusalKind::Unsupported)
    }
}

/// Names come from anybody: what is printed, or logged, of them is one line and no command to a
/// terminal.
fn one_line(text: &str) -> String {
    match text.contains(char::is_control) {
        false => text.to_owned(),
        true => text.chars().fold(String::new(), |mut line, c| {
            match c.is_control() {
                true => line.extend(c.escape_default()),
                false => line.push(c),
            }
            line
        }),
    }
}

/// The reply as it goes over the socket.
pub fn reply(outcome: &Result<Answer>) -> Value {
    let (mut reply, ok) = match outcome {
        Ok(answer) => (json!(answer), true),
        Err(refusal) => (json!(refusal), false),
    };
    reply["ok"] = json!(ok);
    if let Err(refusal) = outcome {
        reply["used_wrongly"] = json!(refusal.is_misuse());
    }
    reply
}

/// A reply from the socket.
pub(crate) fn read_reply(line: &[u8]) -> Result<Answer> {
    let lost = |e| RefusalKind::Failed.because(format!("the host's answer makes no sense: {e}"));
    let reply: Value = serde_json::from_slice(line).map_err(lost)?;
    if reply["ok"] == true {
        return serde_json::from_value(reply).map_err(lost);
    }
    // A mount's process says no kind.
    let text = reply["error"].as_str().unwrap_or("it failed").to_owned();
    let wrongly = reply["used_wrongly"] == true;
    let kind = if wrongly { RefusalKind::UsedWrongly } else { RefusalKind::Failed };
    Err(serde_json::from_value(reply).unwrap_or(kind.because(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_objects_with_a_verb() {
        let set = Set { name: "d10".into(), read: Some("first".into()), ..Set::default() };
        let text = serde_json::to_string(&Request::Set(set.clone())).unwrap();
        let short = r#"{"do":"set","name":"d10","read":"first"}"#;
        for text in [text.as_str(), short] {
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), Request::Set(set.clone()));
        }
        assert_eq!(serde_json::to_string(&Request::Status).unwrap(), r#"{"do":"status"}"#);
    }

    #[test]
    fn an_unknown_field_is_an_error() {
        let text = r#"{"do":"set","name":"d10","raed":"first"}"#;
        let error = serde_json::from_str::<Request>(text).unwrap_err().to_string();
        assert!(error.contains("raed"), "{error}");
    }

    #[test]
    fn replies_come_back_as_they_went() {
        let answer = Answer { bytes: Some(7), ..Answer::default() };
        let refusal = RefusalKind::Busy.about("d10", "is open");
        for outcome in [Ok(answer), Err(refusal)] {
            let line = reply(&outcome).to_string();
            assert_eq!(read_reply(line.as_bytes()), outcome);
        }
        let of_a_mount = r#"{"ok":false,"error":"no","used_wrongly":true}"#;
        let refused = read_reply(of_a_mount.as_bytes()).unwrap_err();
        assert_eq!((refused.kind, refused.error.as_str()), (RefusalKind::UsedWrongly, "no"));
    }
}
