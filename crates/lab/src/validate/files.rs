//! The files of a drive: parameters and trace.

use std::path::{Path, PathBuf};

use steadfast_devices::model::HddParams;
use steadfast_vfs::bounded;

use super::ValidateError;
use super::drive::{self, Blocks};
use super::keys;
use super::syntax::{Block, Parameters, Value, parse};
use super::trace::{self, TraceRequest};

/// Bytes of a trace, at most, compressed or not.
const TRACE_MAX: u64 = 256 << 20;
/// The same of a file of parameters.
const PARAMETERS_MAX: u64 = 4 << 20;
/// Files that name each other, at most.
const FILES_MAX: usize = 32;

/// A drive and its trace.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The files' name, without what they end with.
    pub name: String,
    /// The parameters' file.
    pub file: PathBuf,
    /// What it says.
    pub parameters: HddParams,
    /// All files that were read for it.
    pub files: Vec<PathBuf>,
    /// What of it the model does not have.
    pub left_out: Vec<String>,
    /// What was asked of the drive, in order.
    pub requests: Vec<TraceRequest>,
}

/// The drives of a folder, by name, or the one of a file; in place of each that cannot be read why
/// it cannot.
///
/// # Errors
/// There is none.
pub fn drives(path: &Path) -> Result<Vec<Result<Drive, ValidateError>>, ValidateError> {
    let wrong = |what: String| ValidateError { file: path.to_owned(), what };
    if !path.is_dir() {
        let of_it = kind_of(path).ok_or_else(|| {
            wrong("is no folder, and neither NAME.parv nor NAME.toml (.zst may follow)".into())
        })?;
        return Ok(vec![read(path, &of_it)]);
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
    Ok(files.iter().map(|(kind, file)| read(file, kind)).collect())
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

/// A file's text; `read`: which files were read.
fn text(file: &Path, most: u64, read: &mut Vec<PathBuf>) -> Result<String, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let found = file.metadata().map_err(|e| wrong(e.to_string()))?;
    // Opening a pipe would wait for its other end.
    if !found.is_file() {
        return Err(wrong("is no file".into()));
    }
    read.push(file.to_owned());
    if file.extension().is_none_or(|end| end != "zst") {
        return bounded::text(file, most).map_err(|e| wrong(e.to_string()));
    }
    let packed = bounded::read(file, most).map_err(|e| wrong(e.to_string()))?;
    let (mut frames, mut bytes) = (packed.as_slice(), Vec::new());
    while !frames.is_empty() {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(&mut frames)
            .map_err(|e| wrong(format!("is not compressed by zstd: {e}")))?;
        let left = most - bytes.len() as u64;
        bytes.extend(bounded::read_from(unpacked, left).map_err(|e| wrong(e.to_string()))?);
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is no text in UTF-8".into()))
}

fn read(file: &Path, kind: &DriveFile) -> Result<Drive, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let mut files = Vec::new();
    let (parameters, left_out) = match kind.is_ours {
        true => (of_ours(file, &mut files)?, Vec::new()),
        false => drive::parameters(&blocks(file, &mut files)?).map_err(wrong)?,
    };
    let trace = format!("{}.trace", kind.name);
    let trace = beside(file, &trace).ok_or_else(|| wrong(format!("no {trace} is beside it")))?;
    let requests = trace::parse(&text(&trace, TRACE_MAX, &mut files)?, parameters.sectors);
    let requests = requests.map_err(|what| ValidateError { file: trace, what })?;
    let (name, file) = (kind.name.clone(), file.to_owned());
    Ok(Drive { name, file, parameters, files, left_out, requests })
}

/// The keys of a device of kind `hdd`: by themselves, or as the only device of a setup.
fn of_ours(file: &Path, read: &mut Vec<PathBuf>) -> Result<HddParams, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let mut table: toml::Table =
        text(file, PARAMETERS_MAX, read)?.parse().map_err(|e: toml::de::Error| {
            // Its own text has lines and a mark below them.
            wrong(e.to_string().trim_end().to_owned())
        })?;
    if let Some(toml::Value::Table(devices)) = table.get("device") {
        let one = devices.values().next().and_then(toml::Value::as_table);
        table = match (devices.len(), one) {
            (1, Some(device)) => device.clone(),
            (n, _) => return Err(wrong(format!("has {n} devices; one is wanted"))),
        };
    }
    match table.remove("kind") {
        Some(toml::Value::String(kind)) if kind == "hdd" => {}
        Some(kind) => return Err(wrong(format!("is of kind {kind}, not of \"hdd\""))),
        None => return Err(wrong("does not say kind = \"hdd\"".into())),
    }
    // One key at a time says which is wrong.
    for (key, value) in &table {
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        alone.try_into::<HddParams>().map_err(|e| wrong(format!("{key}: {}", e.message())))?;
    }
    table.try_into().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))
}

/// The blocks of a parameter file, and of those that it names.
fn blocks(file: &Path, read: &mut Vec<PathBuf>) -> Result<Blocks, ValidateError> {
    let wrong = |what: String| ValidateError { file: file.to_owned(), what };
    let named = |name: &str| {
        let there = beside(file, name);
        there.ok_or_else(|| wrong(format!("names {name}, which is not beside it")))
    };
    let mut parsed = |file: &Path| -> Result<Parameters, ValidateError> {
        if read.len() >= FILES_MAX {
            return Err(wrong(format!("names more than {FILES_MAX} files")));
        }
        let text = text(file, PARAMETERS_MAX, read)?;
        parse(&text).map_err(|what| ValidateError { file: file.to_owned(), what })
    };
    let mut all = parsed(file)?;
    while let Some(source) = all.sources.pop() {
        let more = parsed(&named(&source)?)?;
        all.blocks.extend(more.blocks);
        all.sources.extend(more.sources);
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
    let seek_times = seek_file.map(|name| text(&named(name)?, PARAMETERS_MAX, read)).transpose()?;
    keys::check(&disk, &model).map_err(wrong)?;
    let is_bus = |block: &Block| block.kind == "disksim_bus";
    let buses = all.blocks.into_iter().filter(is_bus).collect();
    Ok(Blocks { disk, model, buses, seek_times })
}
