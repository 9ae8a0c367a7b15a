//! `extents`: where a file lies.

use std::io::Write;

use anyhow::{Context, Result, bail};
use serde_json::json;
use steadfast_vfs::path::{resolve, shown};
use steadfast_vfs::{FileExtent, FileSystem, FileType, Ino};

use crate::document;
use crate::terminal::counted;

/// Bytes of the file that are asked about at a time.
const PART: u64 = 1 << 30;

/// Blocks that a file can have: numbers of 32 bits.
const FILE_BLOCKS: u64 = 1 << 32;

/// Writes a line for each piece of the file that has storage, or the list as JSON.
pub fn extents(fs: &dyn FileSystem, path: &[u8], json: bool, out: &mut dyn Write) -> Result<()> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    if !matches!(attr.kind, FileType::Regular | FileType::Directory) {
        usage!("{}: neither a file nor a directory", shown(path));
    }
    let all = all_of(fs, attr.ino).with_context(|| shown(path))?;
    if json {
        let extent = |e: &FileExtent| {
            json!({
                "logical": e.logical, "physical": e.physical, "len": e.len,
                "unwritten": e.unwritten, "delayed": e.delayed, "inline": e.inline,
            })
        };
        let list: Vec<_> = all.iter().map(extent).collect();
        let body = json!({ "path": shown(path), "size": attr.size, "extents": list });
        return Ok(document::print(out, "steadfast-extents", 1, body)?);
    }
    writeln!(out, "{:>16} {:>20} {:>16}  state", "file byte", "device byte", "bytes")?;
    for e in &all {
        writeln!(out, "{:>16} {:>20} {:>16}  {}", e.logical, e.physical, e.len, state(e))?;
    }
    let extents = counted(all.len() as u64, "extent");
    writeln!(out, "{}: {} bytes in {extents}", shown(path), attr.size)?;
    Ok(())
}

/// All pieces, a part of the file at a time: a map of a few blocks can claim the same ones a
/// million times, and nobody has the memory to list that.
fn all_of(fs: &dyn FileSystem, ino: Ino) -> Result<Vec<FileExtent>> {
    let stat = fs.statfs()?;
    let block = u64::from(stat.block_size).max(1);
    let (mut all, mut at, mut mapped) = (Vec::new(), 0, 0_u64);
    while at < FILE_BLOCKS.saturating_mul(block) {
        let part = fs.extents(ino, at, PART)?;
        at += PART;
        for e in part {
            mapped = mapped.saturating_add(e.len);
            if mapped > stat.blocks.saturating_mul(block) {
                bail!("claims more blocks than the image has");
            }
            // A piece may go on behind the part.
            at = at.max(e.logical.saturating_add(e.len));
            all.push(e);
        }
    }
    Ok(all)
}

fn state(e: &FileExtent) -> &'static str {
    match e {
        FileExtent { inline: true, .. } => "inline",
        FileExtent { delayed: true, .. } => "delayed",
        FileExtent { unwritten: true, .. } => "unwritten",
        _ => "written",
    }
}
