//! A change of one thing.

use serde::{Serialize, Serializer};

/// A value of a parameter: texts that are numbers as numbers.
fn as_number<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(whole), _) => to.serialize_i64(whole),
        (_, Ok(number)) if number.is_finite() => to.serialize_f64(number),
        _ => to.serialize_str(text),
    }
}

/// One parameter at another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// `machine`, or the device's name in the scenario.
    pub part: String,
    /// The parameter's key; `drive` and `device`: another one altogether.
    pub parameter: String,
    /// Its value in the scenario; a number in JSON, where it is one.
    #[serde(serialize_with = "as_number")]
    pub from: String,
    /// Its value in this run.
    #[serde(serialize_with = "as_number")]
    pub to: String,
    /// Whether it is a device that holds only journals.
    pub of_journal: bool,
}

impl Change {
    /// Of a device or the machine that has more than a journal.
    pub(super) fn new(
        part: &str,
        parameter: &str,
        from: impl ToString,
        to: impl ToString,
    ) -> Change {
        let (part, parameter) = (part.into(), parameter.into());
        Change { part, parameter, from: from.to_string(), to: to.to_string(), of_journal: false }
    }

    /// The part and the parameter: `disk.rpm`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.part, self.parameter)
    }
}
