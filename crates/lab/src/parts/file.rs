//! The file of a part.

use std::path::{Path, PathBuf};

use steadfast_devices::model::parameters::Size;
use steadfast_setup::form::{Fields, WrongFile, read_text};
use steadfast_setup::{DeviceSpec, table};
use steadfast_vfs::bounded;

use super::Part;
use super::pattern::{Pattern, Unit};

// `EMBEDDED`: the parts that come with the program, name and text. The build script makes it of the
// folder `parts`.
include!(concat!(env!("OUT_DIR"), "/parts.rs"));

/// Why a part cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// Its file cannot be read.
    #[error("{}: {source}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There are mistakes in it.
    #[error("{0}")]
    Form(Box<WrongFile>),
}

table! {
    /// A part: a device, and what is published of it.
    pub struct PartForm: "the file", check PartForm::check {
        /// What it is: maker, model, capacity.
        title: String;
        /// Table: the device, as in a scenario.
        device: DeviceSpec;
        /// Tables: what is published.
        figures as "figure": Vec<FigureForm>;
    }
}

table! {
    /// A published figure.
    pub struct FigureForm: "[[figure]]" {
        /// What is measured: `random` or `sequential`; `read`, `write`, `durable write` or
        /// `write and flush`, of memory also `load`, `ntstore` or `store and clwb`, the stores with
        /// a fence; bytes; how many `at once` if it is not one.
        pattern as "name": Pattern;
        /// Its value.
        value: f64, above 0 to 1000000000000;
        /// Of the value: `ns`, `us`, `/s`, `KiB/s`, `MB/s`, `MiB/s`, `GB/s`.
        unit: Unit;
        /// Bytes, from the start of the device, that it is measured in.
        within: Option<Size>, else "all; of writes the first 512 MiB";
        /// A parameter of the device was set by it.
        input: bool = false;
        /// Where it was published.
        source: String;
    }
}

impl PartForm {
    /// Whether the device can do what is to be measured.
    fn check(fields: &Fields<'_>, form: Option<&PartForm>) {
        let Some(form) = form else { return };
        let Some(params) = form.device.model() else {
            return fields.wrong("device", "a model is needed here", "write its `kind`");
        };
        for (figure, place) in form.figures.iter().zip(fields.tables("figure")) {
            if let Some(what) = figure.pattern.refusal(params) {
                place.wrong("name", what, "");
            }
            let least = figure.pattern.bytes * figure.pattern.at_once;
            let bytes = figure.within.map_or(params.bytes(), |size| size.0);
            if bytes < least || bytes > params.bytes() {
                let most = params.bytes();
                let key = if place.has("within") { "within" } else { "name" };
                place.wrong(key, format!("needs {least} of the device's {most} bytes"), "");
            }
        }
    }
}

/// A part of a text.
fn parse(text: &str, origin: &str) -> Result<Part, PartError> {
    let part = |fields: &Fields<'_>| {
        let PartForm { title, device, figures } = PartForm::read_whole(fields)?;
        Some(Part { title, params: device.model()?.clone(), figures })
    };
    read_text(text, |_| (), part)
        .map_err(|wrongs| PartError::Form(Box::new(WrongFile::new(origin, text, wrongs, ""))))
}

/// A part of a file.
///
/// # Errors
/// It cannot be read, or has mistakes.
pub fn read(file: &Path) -> Result<Part, PartError> {
    let text = bounded::text(file, bounded::SETTINGS_MAX)
        .map_err(|source| PartError::Read { file: file.to_owned(), source })?;
    parse(&text, &file.display().to_string())
}

/// The parts that come with the program, by kind and file.
pub fn embedded() -> Vec<Part> {
    // OK to expect: a test reads every one of them.
    let of = |(name, text): &(&str, &str)| parse(text, name).expect("a part's file");
    let mut parts: Vec<Part> = EMBEDDED.iter().map(of).collect();
    parts.sort_by_key(|part| part.params.kind_name());
    parts
}
