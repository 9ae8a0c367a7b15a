//! `extents`: where a file lies.

use std::io::Write;

use anyhow::{Context, Result};
use serde_json::json;
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileExtent, FileSystem, FileType};

use super::tree::shown;
use crate::Usage;

/// Writes a line for each piece of the file that has storage, or the list as JSON.
pub fn extents(fs: &dyn FileSystem, path: &[u8], json: bool, out: &mut dyn Write) -> Result<()> {
    let attr = resolve(fs, path, true).with_context(|| shown(path))?;
    if !matches!(attr.kind, FileType::Regular | FileType::Directory) {
        return Err(Usage(format!("{}: neither a file nor a directory", shown(path))).into());
    }
    let all = fs.extents(attr.ino, 0, u64::MAX).with_context(|| shown(path))?;
    if json {
        let list: Vec<_> = all
            .iter()
            .map(|e| {
                json!({
                    "logical": e.logical,
                    "physical": e.physical,
                    "len": e.len,
                    "unwritten": e.unwritten,
                    "delayed": e.delayed,
                    "inline": e.inline,
                })
            })
            .collect();
        let document = json!({
            "format": "steadfast-extents",
            "version": 1,
            "path": shown(path),
            "size": attr.size,
            "extents": list,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    writeln!(out, "{:>16} {:>20} {:>16}  state", "file byte", "device byte", "bytes")?;
    for e in &all {
        writeln!(out, "{:>16} {:>20} {:>16}  {}", e.logical, e.physical, e.len, state(e))?;
    }
    let plural = if all.len() == 1 { "" } else { "s" };
    writeln!(out, "{}: {} bytes in {} extent{plural}", shown(path), attr.size, all.len())?;
    Ok(())
}

fn state(e: &FileExtent) -> &'static str {
    match e {
        FileExtent { inline: true, .. } => "inline",
        FileExtent { delayed: true, .. } => "delayed",
        FileExtent { unwritten: true, .. } => "unwritten",
        _ => "written",
    }
}
