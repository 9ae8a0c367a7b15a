//! The files of a drive: parameters and trace.

use std::path::{Path, PathBuf};

use steadfast_devices::model::HddParams;
use steadfast_vfs::bounded;

use super::ValidateError;
use super::drive::{self, Blocks};
use super::syntax::{Block, Parameters, Value, parse};
use super::trace::{self, TraceRequest};

/// Bytes of a file, at most, compressed or not.
const BYTES_MAX: u64 = 256 << 20;

/// A drive and its trace.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The files' name, without what they end with.
    pub name: String,
    /// The parameters' file.
    pub file: PathBuf,
    /// What it says.
    pub parameters: HddParams,
    /// What of it the model does not have.
    pub left_out: Vec<String>,
    /// What was asked of the drive, in order.
    pub requests: Vec<TraceRequest>,
}

/// The drives of a folder, by name, or the one of a file.
///
/// # Errors
/// One cannot be read, or there is none.
pub fn drives(path: &Path) -> Result<Vec<Drive>, ValidateError> {
    let wrong = |what: String| ValidateError { file: path.to_owned(), what };
    if !path.is_dir() {
        let of_it = kind_of(path).ok_or_else(|| {
            wrong("is no folder, and neither NAME.parv nor NAME.toml (.zst may follow)".into())
        })?;
        return read(path, &of_it).map(|drive| vec![drive]);
    }
    let entries = std::fs::read_dir(path).map_err(|e| wrong(e.to_string()))?;
    let mut files: Vec<(DriveFile, PathBuf)> = entries
        .filter_map(|entry| {
            let file = entry.ok()?.path();
            kind_of(&file).map(|kind| (kind, file))
        })
        .filter(|(kind, file)| beside(file, &format!("{}.trace", kind.name)).is_some())
        .collect();
    files.sort();
    files.dedup_by(|a, b| a.0.name == b.0.name);
    if files.is_empty() {
        return Err(wrong("holds no NAME.parv or NAME.toml with a NAME.trace beside it".into()));
    }
    files.iter().map(|(kind, file)| read(file, kind)).collect()
}

/// A file of a drive's parameters, by its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DriveFile {
    name: String,
    is_ours: bool,
}

fn kind_of(file: &Path) -> Option<DriveFile> {
    let name = file.file_name()?.to_str()?;
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let (name, kind) = name.rsplit_once('.')?;
    let is_ours = match kind {
        "parv" => false,
        "toml" => true,
        _ => return None,
    };
    Some(DriveFile { name: name.to_owned(), is_ours })
}

/// A file in the same folder, compressed or not, if it is there.
fn beside(file: &Path, name: &str) -> Option<PathBuf> {
    let folder = file.parent()?;
    let is_name = !name.contains('/') && name != "..";
    let both = [folder.join(name), folder.join(format!("{name}.zst"))];
    both.into_iter().find(|file| is_name && file.exists())
}

/// A file's text.
fn text(file: &Path) -> Result<String, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    if file.extension().is_none_or(|end| end != "zst") {
        return bounded::text(file, BYTES_MAX).map_err(|e| wrong(e.to_string()));
    }
    let packed = bounded::read(file, BYTES_MAX).map_err(|e| wrong(e.to_string()))?;
    let unpacked = ruzstd::decoding::StreamingDecoder::new(packed.as_slice())
        .map_err(|e| wrong(format!("is not compressed by zstd: {e}")))?;
    let bytes = bounded::read_from(unpacked, BYTES_MAX).map_err(|e| wrong(e.to_string()))?;
    String::from_utf8(bytes).map_err(|_| wrong("it is no text in UTF-8".into()))
}

fn read(file: &Path, kind: &DriveFile) -> Result<Drive, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let (parameters, left_out) = match kind.is_ours {
        true => (of_ours(file)?, Vec::new()),
        false => drive::parameters(&blocks(file)?).map_err(wrong)?,
    };
    let trace = format!("{}.trace", kind.name);
    let trace = beside(file, &trace).ok_or_else(|| wrong(format!("no {trace} is beside it")))?;
    let requests = trace::parse(&text(&trace)?, parameters.sectors);
    let requests = requests.map_err(|what| ValidateError { file: trace, what })?;
    let (name, file) = (kind.name.clone(), file.to_owned());
    Ok(Drive { name, file, parameters, left_out, requests })
}

/// The keys of a device of kind `hdd`.
fn of_ours(file: &Path) -> Result<HddParams, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let mut table: toml::Table = text(file)?.parse().map_err(|e: toml::de::Error| {
        // Its own text has lines and a mark below them.
        wrong(e.to_string().trim_end().to_owned())
    })?;
    match table.remove("kind") {
        Some(toml::Value::String(kind)) if kind == "hdd" => {}
        _ => return Err(wrong("does not say kind = \"hdd\"".into())),
    }
    table.try_into().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))
}

/// The blocks of a parameter file, and of those that it names.
fn blocks(file: &Path) -> Result<Blocks, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let named = |name: &str| {
        let there = beside(file, name);
        there.ok_or_else(|| wrong(format!("names {name}, which is not beside it")))
    };
    let parsed = |file: &Path| -> Result<Parameters, ValidateError> {
        parse(&text(file)?).map_err(|what| ValidateError { file: file.to_owned(), what })
    };
    let mut all = parsed(file)?;
    for source in std::mem::take(&mut all.sources) {
        all.blocks.extend(parsed(&named(&source)?)?.blocks);
    }
    let of_kind = |kind: &str, blocks: &[Block]| -> Result<Block, ValidateError> {
        let found = blocks.iter().find(|block| block.kind == kind).cloned();
        found.ok_or_else(|| wrong(format!("has no block {kind}")))
    };
    let disk = of_kind("disksim_disk", &all.blocks)?;
    let mut model = match disk.values.get("Model") {
        Some(Value::Source(source)) => of_kind("dm_disk", &parsed(&named(source)?)?.blocks)?,
        Some(Value::Block(model)) => model.clone(),
        _ => return Err(wrong("'Model' is missing in disksim_disk".into())),
    };
    for part in ["Layout Model", "Mechanical Model"] {
        if let Some(Value::Source(source)) = model.values.get(part) {
            let first = parsed(&named(source)?)?.blocks.into_iter().next();
            let block = first.ok_or_else(|| wrong(format!("'{part}' is empty")))?;
            model.values.insert(part.into(), Value::Block(block));
        }
    }
    let seek_file = match model.values.get("Mechanical Model") {
        Some(Value::Block(mechanics)) => mechanics.word("Full seek curve"),
        _ => None,
    };
    let seek_times = seek_file.map(|name| text(&named(name)?)).transpose()?;
    let is_bus = |block: &Block| block.kind == "disksim_bus";
    let buses = all.blocks.into_iter().filter(is_bus).collect();
    Ok(Blocks { disk, model, buses, seek_times })
}
