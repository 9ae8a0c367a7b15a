//! `steadfast journal`: another journal for an unmounted file system.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use steadfast_ext4_check as check;
use steadfast_ext4_tune::{
    self as tune, AttachReport, DetachReport, DiscardedLog, JournalDevice, JournalLocation,
    JournalStatus, LossPolicy, NewJournal,
};
use steadfast_setup::path::memory;
use uuid::Uuid;

use super::image::open;
use super::journal_device::{of_image, open_journal};
use crate::cli::{Image, JournalCommand, NewJournalArgs};
use crate::mount::mmp::reporting_wait;
use crate::terminal::counted;
use crate::{CommandEnd, Usage, document, way_out};

/// Does what was asked for.
pub fn run(command: &JournalCommand, out: &mut dyn Write) -> Result<CommandEnd> {
    match command {
        JournalCommand::Status { image, json } => status(image, *json, out),
        JournalCommand::Attach { image, new } => {
            let new = new_journal(image, new)?;
            let device = open(image, false)?;
            let attach = || tune::attach(&device, &new);
            let attached = reporting_wait(&device, &name(image), false, attach);
            let attached = attached.with_context(|| name(image))?;
            print_attached(image, &attached, out)
        }
        JournalCommand::Move { image, new } => {
            let old = old_journal(image, false)?;
            let to = new_journal(&image.image, new)?;
            let device = open(&image.image, false)?;
            let move_to = || tune::move_to(&device, old.as_ref(), &to);
            let moved =
                reporting_wait(&device, &name(&image.image), false, move_to).map_err(|e| {
                    match &image.journal {
                    Some(path) if way_out::is_journal_too_much(&e) => Usage(format!(
                        "{}: {e}: --journal names the present journal's device; a new journal on \
                         {path} is asked for by --device {path}",
                        name(&image.image),
                        path = path.display(),
                    ))
                    .into(),
                    _ => anyhow::Error::from(e).context(name(&image.image)),
                }
                })?;
            print_attached(&image.image, &moved, out)
        }
        JournalCommand::Detach { image, discard_unreplayed } => {
            let journal = old_journal(image, false)?;
            let device = open(&image.image, false)?;
            let loss = if *discard_unreplayed { LossPolicy::Accept } else { LossPolicy::Refuse };
            let detach = || tune::detach(&device, journal.as_ref(), loss);
            let gone = reporting_wait(&device, &name(&image.image), false, detach)
                .with_context(|| name(&image.image))?;
            print_detached(&image.image, &gone, out)
        }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// The present journal's device: the one that was named, else the one with the right UUID.
fn old_journal(image: &Image, read_only: bool) -> Result<Option<JournalDevice>> {
    of_image(&image.image, image.given(), read_only)
}

fn new_journal(image: &Path, args: &NewJournalArgs) -> Result<NewJournal> {
    if let Some(path) = &args.device {
        let place = |path| std::fs::canonicalize(memory::file(path)).ok();
        if place(path).is_some_and(|path| Some(path) == place(image)) {
            usage!("the journal is to be on another device");
        }
        return Ok(NewJournal::External(open_journal(path, false, args.accept_volatile)?));
    }
    let Some(text) = &args.size else { return Ok(NewJournal::Internal { blocks: None }) };
    let bytes =
        steadfast_lab::size::parse(text).map_err(|e| Usage(format!("--size {text}: {e}")))?;
    let device = open(image, true)?;
    let block_size = check::info(&device).with_context(|| name(image))?.block_size.max(1024);
    let blocks = u32::try_from(bytes / u64::from(block_size)).map_err(|_| {
        let most = (u64::from(u32::MAX) * u64::from(block_size)) >> 30;
        Usage(format!("--size {text}: too large: at most {most}g here"))
    })?;
    Ok(NewJournal::Internal { blocks: Some(blocks) })
}

fn print_attached(image: &Path, a: &AttachReport, out: &mut dyn Write) -> Result<CommandEnd> {
    let image = image.display();
    match a.external {
        Some(uuid) => writeln!(out, "{image}: external journal {uuid}, {} blocks", a.blocks)?,
        None => writeln!(out, "{image}: internal journal, {} blocks", a.blocks)?,
    }
    if a.freed_blocks > 0 {
        writeln!(out, "the old journal gave {} back", counted(a.freed_blocks, "block"))?;
    }
    if a.discarded_transactions > 0 {
        writeln!(
            out,
            "the journal device held {} of an earlier use: thrown away",
            counted(a.discarded_transactions.into(), "transaction")
        )?;
    }
    Ok(CommandEnd::Good)
}

/// Block numbers printed after a loss.
const BLOCKS_SHOWN: usize = 100;

fn print_detached(image: &Path, d: &DetachReport, out: &mut dyn Write) -> Result<CommandEnd> {
    let image = image.display();
    if d.replayed_transactions > 0 {
        let replayed = counted(d.replayed_transactions.into(), "transaction");
        writeln!(out, "{image}: {replayed} replayed")?;
    }
    match d.external {
        Some(uuid) => writeln!(out, "{image}: external journal {uuid} detached")?,
        None => writeln!(out, "{image}: internal journal detached")?,
    }
    if d.freed_blocks > 0 {
        writeln!(out, "it gave {} back", counted(d.freed_blocks, "block"))?;
    }
    if d.external.is_some() && !d.released {
        writeln!(
            out,
            "the journal device was not there and still names this file system: before it is used \
             again, mkfs -O journal_dev -F makes it anew"
        )?;
    }
    match &d.discarded {
        DiscardedLog::Nothing => return Ok(CommandEnd::Good),
        DiscardedLog::Listed { transactions, blocks } => {
            writeln!(
                out,
                "lost: {} that would have changed {}",
                counted((*transactions).into(), "transaction"),
                counted(blocks.len() as u64, "block")
            )?;
            let shown: Vec<String> = blocks.iter().take(BLOCKS_SHOWN).map(u64::to_string).collect();
            let more = if blocks.len() > BLOCKS_SHOWN { " ..." } else { "" };
            writeln!(out, "  blocks {}{more}", shown.join(" "))?;
        }
        DiscardedLog::Unknown { why, since } => {
            let since = jiff::Timestamp::from_second(i64::try_from(*since).unwrap_or(0))?;
            writeln!(out, "lost: an unknown part of what was changed since {since}: {why}")?;
        }
    }
    if let Some(report) = &d.check {
        for finding in &report.findings {
            writeln!(out, "{finding}")?;
        }
        let count = report.findings.len() as u64 + report.more_findings;
        let findings = counted(count, "finding");
        writeln!(out, "check: {findings}; run e2fsck -f before it is used")?;
    }
    Ok(CommandEnd::Problem)
}

fn status(image: &Image, as_json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let journal = old_journal(image, true)?;
    let device = open(&image.image, true)?;
    let s = tune::status(&device, journal.as_ref()).with_context(|| name(&image.image))?;
    if as_json {
        document::print(out, "steadfast-journal", 1, fields(&image.image, &s))?;
    } else {
        for (key, value) in rows(&s) {
            writeln!(out, "{key:18} {value}")?;
        }
    }
    Ok(if s.problem.is_some() || s.fs_error { CommandEnd::Problem } else { CommandEnd::Good })
}

fn rows(s: &JournalStatus) -> Vec<(&'static str, String)> {
    let mut rows = vec![("journal:", place(&s.place))];
    if let Some(uuid) = s.fs_uuid {
        rows.push(("file system:", uuid.to_string()));
    }
    if let Some(sb) = &s.superblock {
        let size = u64::from(sb.max_len()) * u64::from(sb.block_size()) / 1024;
        rows.push(("size:", format!("{} blocks, {size} KiB", sb.max_len())));
        rows.push(("journal UUID:", sb.uuid().to_string()));
        let features = sb.features().names();
        let text = if features.is_empty() { "(none)".into() } else { features.join(" ") };
        rows.push(("features:", text));
        rows.push(("sequence:", sb.sequence().to_string()));
        if sb.errno() != 0 {
            rows.push(("error recorded:", sb.errno().to_string()));
        }
    }
    if let JournalLocation::External { .. } = s.place {
        let mark = match s.home_mark {
            Some(tid) => format!("the log must reach transaction {tid}"),
            None => "none".into(),
        };
        rows.push(("home mark:", mark));
    }
    let users = s.users();
    if !users.is_empty() {
        rows.push(("used by:", texts(&users).join(", ")));
    }
    if let Some(p) = s.pending {
        let text = match p.transactions {
            0 => "clean".to_owned(),
            1 => format!("1 transaction waits, {}", counted(p.blocks, "block")),
            n => format!("{n} transactions wait, {}", counted(p.blocks, "block")),
        };
        rows.push(("contents:", text));
    }
    if s.fs_uuid.is_some() && s.place != JournalLocation::None {
        let text = if s.needs_recovery { "yes" } else { "no" };
        rows.push(("needs recovery:", text.into()));
    }
    if s.fs_error {
        rows.push(("file system:", "has an error recorded: run e2fsck -f".into()));
    }
    if let Some(problem) = &s.problem {
        rows.push(("problem:", problem.clone()));
    }
    rows
}

fn place(place: &JournalLocation) -> String {
    match place {
        JournalLocation::None => "none".into(),
        JournalLocation::Internal { inode } => format!("internal, inode {inode}"),
        JournalLocation::External { uuid, number: 0 } => format!("external, UUID {uuid}"),
        JournalLocation::External { uuid, number } => {
            format!("external, UUID {uuid}, remembered as device {number:#06x}")
        }
        JournalLocation::Device { uuid, .. } => format!("a journal device, UUID {uuid}"),
    }
}

fn texts(users: &[Uuid]) -> Vec<String> {
    users.iter().map(Uuid::to_string).collect()
}

fn fields(image: &Path, s: &JournalStatus) -> Value {
    let (kind, uuid) = match &s.place {
        JournalLocation::None => ("none", None),
        JournalLocation::Internal { .. } => ("internal", None),
        JournalLocation::External { uuid, .. } => ("external", Some(uuid.to_string())),
        JournalLocation::Device { uuid, .. } => ("device", Some(uuid.to_string())),
    };
    let journal = s.superblock.as_ref().map(|sb| {
        json!({
            "blocks": sb.max_len(),
            "block_size": sb.block_size(),
            "uuid": sb.uuid().to_string(),
            "features": sb.features().names(),
            "sequence": sb.sequence().0,
            "errno": sb.errno(),
        })
    });
    json!({
        "image": name(image),
        "place": kind,
        "device_uuid": uuid,
        "fs_uuid": s.fs_uuid.map(|u| u.to_string()),
        "needs_recovery": s.needs_recovery,
        "home_mark": s.home_mark.map(|tid| tid.0),
        "fs_error": s.fs_error,
        "journal": journal,
        "users": texts(&s.users()),
        "transactions": s.pending.map(|p| p.transactions),
        "blocks": s.pending.map(|p| p.blocks),
        "problem": s.problem,
    })
}
