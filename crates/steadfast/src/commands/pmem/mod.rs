//! `steadfast pmem`: ranges of memory as devices.

mod check;
pub mod cli;
mod show;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_devices::filter::btt;
use steadfast_devices::filter::fsdax::{self, Map};
use steadfast_devices::source::Pmem;
use steadfast_devices::source::pmem::{LABEL_BYTES, Mode, RangeLabel};
use steadfast_setup::path::memory;

use crate::commands::bytes_of;
use crate::commands::whole_file::place::{self, FolderName, Identity, PathMeaning};
use crate::setup_error::to_anyhow;
use crate::{CommandEnd, Usage, terminal};
use cli::PmemCommand;

/// Bytes of a name in a label.
const NAME_MAX: usize = 63;
/// Ranges are whole pages.
const PAGE: u64 = 4096;

/// Runs it.
pub fn run(command: &PmemCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        PmemCommand::Create { emulate: size, mode, sector, align, map, name, path } => {
            let (mode, sector, map) = (Mode::from(*mode), *sector, map.map(Map::from));
            let align = align.as_deref();
            create(&NamespaceSpec { size, name, mode, sector, align, map, path }, out)?;
        }
        PmemCommand::Check { repair, force, path } => {
            return check::run(path, repair.then_some(*force), out);
        }
        PmemCommand::List { json, folders } => show::list(folders, *json, out)?,
        PmemCommand::Info { json, path } => show::info(path, *json, out)?,
        PmemCommand::Destroy { force, path } => destroy(path, *force, out)?,
    }
    Ok(CommandEnd::Good)
}

/// What is to be made.
struct NamespaceSpec<'a> {
    size: &'a str,
    name: &'a str,
    mode: Mode,
    sector: Option<u32>,
    align: Option<&'a str>,
    map: Option<Map>,
    path: &'a Path,
}

fn create(new: &NamespaceSpec<'_>, out: &mut dyn Write) -> Result<()> {
    let NamespaceSpec { size, name, mode, sector, align, map, path } = *new;
    let path = memory::file(path);
    let wrong = |why: String| Usage(format!("--emulate {size}: {why}"));
    let bytes = steadfast_lab::size::parse(size).map_err(|e| wrong(e.to_string()))? / PAGE * PAGE;
    if bytes <= LABEL_BYTES {
        return Err(wrong("a range is larger than its label of 128k; say 64m, or 1g".into()).into());
    }
    if name.len() > NAME_MAX {
        usage!("--name: {} bytes, a label has room for {NAME_MAX}", name.len());
    }
    if name.chars().any(char::is_control) {
        usage!("--name: it has a control character");
    }
    let of_mode = [
        ("--sector", sector.is_some(), mode.version().is_some(), "sector"),
        ("--align", align.is_some(), mode == Mode::Fsdax, "fsdax"),
        ("--map", map.is_some(), mode == Mode::Fsdax, "fsdax"),
    ];
    if let Some((option, .., of)) = of_mode.iter().find(|(_, given, means, _)| *given && !means) {
        usage!("{option} is of --mode {of}, not of {}", mode.name());
    }
    let sector = sector.unwrap_or(4096);
    if ![512, 4096].contains(&sector) {
        usage!("--sector {sector}: 512 or 4096 bytes");
    }
    let align = bytes_of("--align", align)?.unwrap_or(2 << 20);
    let map = map.unwrap_or(Map::Device);
    let (uuid, room) = (uuid::Uuid::new_v4(), bytes - LABEL_BYTES);
    let label = RangeLabel { uuid, name: name.into(), mode, bytes: room, cookie: 0 };
    // As root no link of another user is followed.
    let cannot = |e| Usage(format!("{}: cannot create it: {e}", path.display()));
    let place = FolderName::of_new_file(path).map_err(cannot)?;
    let (pmem, made) = Pmem::create_labelled(place.into_folder(), path, bytes, label.clone())?;
    let pmem = Arc::new(pmem);
    let device: Arc<dyn BlockDevice> = Arc::clone(&pmem) as Arc<dyn BlockDevice>;
    // Of any namespace: a kernel that gets the range as memory sees it without its label.
    let formatted = match mode {
        Mode::Raw => Ok(()),
        Mode::Sector(version) => {
            let options = btt::Options { sector, version, ..btt::Options::default() };
            btt::format(&device, options).map(drop).map_err(anyhow::Error::from)
        }
        Mode::Fsdax => {
            let options =
                fsdax::Options { align, map, behind: label.behind(), ..Default::default() };
            fsdax::format(&device, options).map(drop).map_err(anyhow::Error::from)
        }
    };
    // A range that is no namespace is of no use.
    formatted.inspect_err(|_| made.remove())?;
    if let Some(note) = memory::promise_note(&pmem) {
        terminal::note(&format!("note: {note}"));
    }
    let (shown, uuid) = (path.display(), label.uuid);
    writeln!(out, "{shown}: a {} namespace of {} bytes, {uuid}", mode.name(), label.bytes)?;
    if !memory::is_in_memory(path) {
        terminal::note(&format!(
            "note: {shown} is on a disk: the host writes it there now and then. In /dev/shm it is \
             in memory only"
        ));
    }
    Ok(())
}

/// The file that a path led to: what is looked at is what is removed, whoever renames files and
/// folders meanwhile.
struct LocatedFile(Option<(FolderName, Identity)>);

impl LocatedFile {
    fn find(path: &Path) -> std::io::Result<LocatedFile> {
        let PathMeaning::Named(place) = place::find(path)? else { return Ok(LocatedFile(None)) };
        let file = place.present()?.map(|there| Identity::of(&there)).transpose()?;
        Ok(LocatedFile(file.map(|file| (place, file))))
    }

    fn remove(&self) -> std::io::Result<()> {
        match &self.0 {
            Some((place, file)) if !place.is_of(*file) => Err(place::replaced()),
            Some((place, file)) => place.remove(*file),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

fn destroy(given: &Path, force: bool, out: &mut dyn Write) -> Result<()> {
    let path = memory::file(given);
    let shown = path.display();
    let found = LocatedFile::find(path);
    let found = found.map_err(|e| Usage(format!("{shown}: cannot open it: {e}")))?;
    if Pmem::label_of(path).is_none() {
        std::fs::File::open(path).map_err(|e| Usage(format!("{shown}: cannot open it: {e}")))?;
        usage!(
            "{shown}: no emulated range (it has no label): a namespace of an NVDIMM is taken away \
             by ndctl destroy-namespace, a file by rm"
        );
    }
    if !memory::is_memory(given).map_err(to_anyhow)? {
        usage!(
            "{shown}: is used as it is, and no emulated range: the label at its end is but \
             contents; a file is taken away by rm"
        );
    }
    if force {
        // Whatever it holds, or whatever is left of it; but not while it is in use.
        drop(memory::map(given, true).map_err(to_anyhow)?);
        found.remove()?;
        writeln!(out, "{shown}: removed")?;
        return Ok(());
    }
    let device = memory::open(given, true).map_err(to_anyhow)?.device;
    if let Ok(info) = steadfast_ext4_check::info(&device) {
        usage!(
            "{shown}: holds a file system (UUID {}); --force removes it, and what it holds is lost",
            info.uuid
        );
    }
    found.remove()?;
    writeln!(out, "{shown}: removed")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_the_name_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for dir in ["dir", "other"] {
            std::fs::create_dir(at(dir)).unwrap();
            std::fs::write(at(dir).join("range"), dir).unwrap();
        }
        let found = LocatedFile::find(&at("dir/range")).unwrap();
        // The folder: the range is removed where it is.
        std::fs::rename(at("dir"), at("moved")).unwrap();
        std::fs::rename(at("other"), at("dir")).unwrap();
        found.remove().unwrap();
        assert!(!at("moved/range").exists() && at("dir/range").exists());
        // The file itself.
        let found = LocatedFile::find(&at("dir/range")).unwrap();
        std::fs::rename(at("dir/range"), at("dir/away")).unwrap();
        std::fs::write(at("dir/range"), "another's").unwrap();
        assert!(found.remove().unwrap_err().to_string().contains("another program replaces it"));
        assert!(at("dir/range").exists() && at("dir/away").exists());
        assert!(LocatedFile::find(&at("none")).unwrap().remove().is_err());
    }
}
