//! `steadfast pmem`: ranges of memory as devices.

pub mod cli;
pub mod open;
mod show;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use steadfast_devices::source::pmem::{LABEL_BYTES, Label, Mode};
use steadfast_devices::source::{Pmem, PmemError, PmemOptions};

use crate::{Outcome, Usage, terminal};
use cli::PmemCommand;

/// Bytes of a name in a label.
const NAME_MAX: usize = 63;
/// Ranges are whole pages.
const PAGE: u64 = 4096;

/// Runs it.
pub fn run(command: &PmemCommand, out: &mut dyn Write) -> Result<Outcome> {
    match command {
        PmemCommand::Create { emulate, name, path } => create(emulate, name, path, out)?,
        PmemCommand::List { json, folders } => show::list(folders, *json, out)?,
        PmemCommand::Info { json, path } => show::info(path, *json, out)?,
        PmemCommand::Destroy { force, path } => destroy(path, *force, out)?,
    }
    Ok(Outcome::Good)
}

fn create(size: &str, name: &str, path: &Path, out: &mut dyn Write) -> Result<()> {
    let path = open::file(path);
    let wrong = |why: String| Usage(format!("--emulate {size}: {why}"));
    let bytes = steadfast_lab::size::parse(size).map_err(wrong)?;
    let bytes = bytes / PAGE * PAGE;
    if bytes <= LABEL_BYTES {
        return Err(wrong("a range is larger than its label of 128k; say 64m, or 1g".into()).into());
    }
    if name.len() > NAME_MAX {
        let what = format!("--name: {} bytes, a label has room for {NAME_MAX}", name.len());
        return Err(Usage(what).into());
    }
    let label = Label { uuid: uuid::Uuid::new_v4(), name: name.into(), mode: Mode::Raw, bytes: 0 };
    let label = Pmem::create_labelled(path, bytes, label).map_err(|e| match e {
        // Also a file that is there already.
        e @ (PmemError::System { .. } | PmemError::BadSize { .. }) => {
            anyhow::Error::from(Usage(e.to_string()))
        }
        e => e.into(),
    })?;
    let pmem = Pmem::open(path, &PmemOptions::default())?;
    open::tell_promise(&pmem);
    let (shown, uuid) = (path.display(), label.uuid);
    writeln!(out, "{shown}: a range of {} bytes, {uuid}", label.bytes)?;
    if !open::is_in_memory(path) {
        terminal::note(&format!(
            "note: {shown} is on a disk: the host writes it there now and then. In /dev/shm it is \
             in memory only"
        ));
    }
    Ok(())
}

fn destroy(path: &Path, force: bool, out: &mut dyn Write) -> Result<()> {
    let path = open::file(path);
    let shown = path.display();
    if Pmem::label_of(path).is_none() {
        let what = format!(
            "{shown}: no emulated range (it has no label): a namespace of an NVDIMM is taken away \
             by ndctl destroy-namespace, a file by rm"
        );
        return Err(Usage(what).into());
    }
    let device: std::sync::Arc<dyn steadfast_block::BlockDevice> =
        std::sync::Arc::new(Pmem::open(path, &PmemOptions::default())?);
    if let (Ok(info), false) = (steadfast_ext4::check::info(&device), force) {
        let what = format!(
            "{shown}: holds a file system (UUID {}); --force removes it, and what it holds is lost",
            info.uuid
        );
        return Err(Usage(what).into());
    }
    std::fs::remove_file(path)?;
    writeln!(out, "{shown}: removed")?;
    Ok(())
}
