//! `steadfast status`: what is mounted, and how it does.

use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use anyhow::Result;
use serde_json::{Value, json};
use steadfast_devices::filter::Scheduler;
use steadfast_devices::filter::schedule::Policy;
use steadfast_ext4_format::ondisk::Compat;
use steadfast_fuse::Transport;
use steadfast_host::mounts;
use steadfast_vfs::foreign::{Foreign, shown};

use super::control::RunningMount;
use super::served::ServedMount;
use super::{control, transact, trouble};
use crate::{CommandEnd, Usage, document, terminal};

/// A mount's status; sizes in bytes unless the name says otherwise.
pub fn of(served: &ServedMount) -> Value {
    let fs = &served.fs;
    let options = &served.wanted.ext4;
    let pages = fs.page_cache().stats();
    // What the option bounds: everything, or without it the contents of files.
    let bytes = if options.cache_bytes.is_some() { fs.memory_bytes() } else { pages.memory_bytes };
    let kept = served.kept_read_only.load(Ordering::Acquire);
    let why = fs.read_only_because().or_else(|| kept.then(|| "remounted read-only".to_owned()));
    let mut in_force = served.in_force.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(policy) = transact::mask(served).as_str().and_then(|mask| mask.parse().ok()) {
        in_force.ext4.transact = policy;
    }
    let down = served.down.load(Ordering::Acquire);
    let no_points = fs.points_fail_because().map(|e| e.to_string());
    let lacking = trouble::UnwrittenData::of(&pages, &served.errors);
    // Without a journal in use nothing was promised: it was mounted read-only.
    let stopped = down || fs.read_only_because().is_some() && fs.journal().is_some();
    let promised_no_more = trouble::promised_no_more(stopped, no_points.is_some(), &lacking);
    let block_size = fs.volume().layout.block_size;
    let has_journal = fs.volume().layout.features.compat.contains(Compat::HAS_JOURNAL);
    let mut in_force = in_force.in_force();
    // Nothing is promised of contents where there is no journal, or where it is left alone.
    let promises = has_journal && !options.no_load;
    in_force.retain(|word| promises || !word.starts_with("data="));
    // Nor is anything committed there.
    in_force.retain(|word| !options.no_load || !word.starts_with("commit="));
    let journal = fs.journal().map(|journal| {
        let (used, all) = journal.usage();
        let stats = journal.stats();
        let (image_bytes, image_bytes_max) = journal.image_bytes();
        json!({
            "external": options.journal_device.is_some(),
            "device": options.journal_device.as_ref().map(|d| d.info().name.clone()),
            "blocks": all,
            "blocks_used": used,
            "block_size": block_size,
            "image_bytes": image_bytes,
            "image_bytes_max": image_bytes_max,
            "commits": stats.commits,
            "fast_commits": stats.fast_commits,
            "checkpoints": stats.checkpoints,
            "error": journal.aborted().map(|e| e.to_string()),
        })
    });
    json!({
        "device": served.device,
        "mountpoint": served.mountpoint.display().to_string(),
        "source": served.source,
        "pid": std::process::id(),
        "transport": transport(&served.transport),
        "seconds": served.since.elapsed().as_secs(),
        "data": promises.then(|| options.data.name()),
        "transact": transact::mask(served),
        "last_point": transact::last_point(served),
        "recovered": recovered(served),
        "options": served.wanted.text,
        "options_in_force": in_force,
        "commit_seconds": options.journal.commit_interval.as_secs(),
        "state": state(down, why.is_some(), no_points.is_some() || !lacking.is_empty()),
        "read_only_because": why,
        "points_fail_because": no_points,
        "failing_because": lacking.because(),
        "promised_no_more": promised_no_more,
        "journal": journal,
        "queue": served.queue.as_deref().map(queue),
        // What a write-back has failed to write waits for another one.
        "dirty_bytes": pages.dirty_bytes + pages.writeback_bytes + pages.retry_bytes,
        "cache": {
            "bytes_max": options.cache_bytes.unwrap_or(options.page_cache.memory_bytes),
            "bytes": bytes,
            "hit_pages": pages.hit_pages,
            "miss_pages": pages.miss_pages,
        },
        "failed_writes": lacking.failed_writes(),
        "unwritten_bytes": pages.retry_bytes,
        "lost_bytes": pages.lost_bytes,
        "unwritten": trouble::unwritten(fs),
        "last_failure": served.errors.last(fs),
        "log": served.log.as_ref().map(|l| l.display().to_string()),
    })
}

/// The request scheduler's settings, and what waits there now.
fn queue(schedule: &Scheduler) -> Value {
    let (settings, now) = (schedule.settings(), schedule.queue());
    let policy = match settings.policy {
        Policy::Fifo => "fifo",
        Policy::Deadline(_) => "deadline",
    };
    let waiting = |requests, bytes| json!({ "requests": requests, "bytes": bytes });
    json!({
        "policy": policy,
        "depth": settings.depth,
        "bytes_max": settings.queue_bytes,
        "reads": waiting(now.reads, now.read_bytes),
        "writes": waiting(now.writes, now.write_bytes),
        "with_device": now.with_device,
        "write_bytes_most": now.write_bytes_max,
        "read_wait_ms_most": now.read_wait_max.as_secs_f64() * 1e3,
        "wbt_lat_ms": settings.throttle.as_ref().map(|t| t.target.as_secs_f64() * 1e3),
        "writes_let_in": now.write_limit,
        "writers_wait": now.writers_wait,
    })
}

/// The same in words.
fn queue_in_words(q: &Value) -> String {
    let number = |v: &Value| v.as_u64().unwrap_or(0);
    let waits =
        |of: &Value| format!("{} ({})", number(&of["requests"]), sized(number(&of["bytes"])));
    format!(
        "{}: reads {}, writes {} wait",
        shown(q["policy"].as_str().unwrap_or_default().as_bytes()),
        waits(&q["reads"]),
        waits(&q["writes"])
    )
}

/// What carries the requests.
fn transport(of: &Transport) -> Value {
    match of {
        Transport::Device { why } => json!({ "name": "fuse", "why": why, "text": of.to_string() }),
        Transport::Ring { queues, entries, buffers } => json!({
            "name": "uring",
            "queues": queues,
            "requests_max": entries,
            "buffer_bytes_max": buffers,
            "text": of.to_string(),
        }),
    }
}

/// What the mount had to recover; null if it had been unmounted before.
fn recovered(served: &ServedMount) -> Value {
    served.fs.recovery().map_or(Value::Null, |recovery| {
        json!({
            "transactions": recovery.log.transactions,
            "blocks": recovery.log.blocks_replayed,
            "fast_commits": recovery.log.fast_commits,
            "orphans": recovery.orphans,
            "in_memory": recovery.in_memory,
        })
    })
}

/// The same in words; `None` if there was nothing to recover.
fn recovery_in_words(r: &Value) -> Option<String> {
    let number = |name: &str| r[name].as_u64().unwrap_or(0);
    let of = |name: &str, what: &str| terminal::counted(number(name), what);
    let (all, blocks) = (of("transactions", "transaction"), of("blocks", "block"));
    let mut parts = vec![format!("{all} replayed, {blocks}")];
    let more = [("fast_commits", "fast commit"), ("orphans", "orphan")];
    parts.extend(more.iter().filter(|(name, _)| number(name) > 0).map(|(name, w)| of(name, w)));
    parts.extend((r["in_memory"] == true).then(|| "in memory only".to_owned()));
    (!r.is_null()).then(|| parts.join(", "))
}

fn state(down: bool, read_only: bool, failing: bool) -> &'static str {
    match (down, read_only, failing) {
        (true, ..) => "down",
        (_, true, _) => "read-only",
        // What is done can still be read, but not all of it is made durable.
        (.., true) => "failing",
        _ => "writable",
    }
}

/// Shows this user's mounts, or the one at `mountpoint`.
pub fn status(mountpoint: Option<&Path>, as_json: bool, out: &mut dyn Write) -> Result<CommandEnd> {
    let running = match mountpoint {
        None => control::running(),
        Some(path) => vec![only(path)?],
    };
    if as_json {
        let mounts: Vec<Value> = running.into_iter().map(|r| r.status).collect();
        document::print(out, "steadfast-status", 1, json!({ "mounts": mounts }))?;
        return Ok(CommandEnd::Good);
    }
    if running.is_empty() {
        writeln!(out, "nothing is mounted")?;
    }
    for r in &running {
        print_mount(&r.status, out)?;
    }
    Ok(CommandEnd::Good)
}

/// The mount at a path.
fn only(path: &Path) -> Result<RunningMount> {
    let (at, running) = control::at(path)?;
    if let Some(running) = running {
        return Ok(running);
    }
    let text = at.display();
    let is_ours = mounts::at(&at).is_ok_and(|p| p.mounted().is_some_and(mounts::Mount::is_ours));
    Err(match is_ours {
        true if control::is_gone(&at) => anyhow::anyhow!(
            "{text}: is a mount whose process is gone; take it away with: steadfast umount {text}"
        ),
        true if is_own(&at) => anyhow::anyhow!(
            "{text}: its process does not answer: it is stopped, or ends; its log says more \
             (steadfast mount says where)"
        ),
        true => anyhow::anyhow!("{text}: is another user's mount"),
        false => Usage(format!("{text}: no mount of ours")).into(),
    })
}

/// Whether this user has mounted what is at a path.
fn is_own(at: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    mounts::at(at).is_ok_and(|p| p.mounted().and_then(mounts::Mount::user) == Some(user))
}

/// A number of bytes for people, in the unit that fits it.
fn sized(bytes: u64) -> String {
    match bytes {
        0 => "nothing".into(),
        n if n < 1 << 10 => format!("{n} bytes"),
        n if n < 1 << 20 => format!("{:.1} KiB", n as f64 / f64::from(1 << 10)),
        n if n < 1 << 30 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n => format!("{:.1} GiB", n as f64 / f64::from(1 << 30)),
    }
}

fn print_mount(s: &Value, out: &mut dyn Write) -> Result<()> {
    // Whoever has mounted it says this, and root asks.
    let text = |v: &Value| shown(v.as_str().unwrap_or_default().as_bytes());
    let number = |v: &Value| v.as_u64().unwrap_or(0);
    writeln!(out, "{}", text(&s["mountpoint"]))?;
    let indent = " ".repeat(13);
    let mut row = |name: &str, value: String| writeln!(out, "  {name:<11}{value}");
    row("source", text(&s["source"]))?;
    row("process", format!("{}, for {} s", number(&s["pid"]), number(&s["seconds"])))?;
    row(
        "requests",
        terminal::hanging(&indent, &format!("by {}", text(&s["transport"]["text"])))
            .trim()
            .to_owned(),
    )?;
    let reasons = ["read_only_because", "points_fail_because", "failing_because"];
    let because = reasons.iter().find(|reason| s[**reason].is_string());
    let because = because.map(|why| format!(": {}", text(&s[*why]))).unwrap_or_default();
    row("state", format!("{}{because}", text(&s["state"])))?;
    if s["promised_no_more"].is_string() {
        row("", format!("not promised any more: {}", text(&s["promised_no_more"])))?;
    }
    if s["last_failure"]["what"].is_string() {
        let failure = text(&s["last_failure"]["what"]);
        let ago = number(&s["last_failure"]["seconds_ago"]);
        row("failed", format!("{ago} s ago: {failure}"))?;
    }
    let given = Foreign::new(s["options"].as_str().unwrap_or_default());
    if !given.is_empty() {
        row("options", given.to_string())?;
    }
    let when = match s["transact"].is_string() {
        true => format!("durable at transaction points: {}", text(&s["transact"])),
        false => format!("commit every {} s", number(&s["commit_seconds"])),
    };
    let is_in_force = |word: &str| {
        s["options_in_force"].as_array().is_some_and(|all| all.iter().any(|option| option == word))
    };
    // A mask of all kinds of points has a line of its own.
    let data = match s["data"].is_string() {
        true => format!("{}, {when}", text(&s["data"])),
        false if is_in_force("noload") => "the journal is left alone (noload)".into(),
        false => format!("no journal, {when}"),
    };
    row("data", terminal::hanging(&indent, &data).trim().to_owned())?;
    let point = &s["last_point"];
    if !point.is_null() {
        let (number, ago) = (number(&point["transaction"]), number(&point["seconds_ago"]));
        row("last point", format!("transaction {number}, {ago} s ago"))?;
    }
    let j = &s["journal"];
    if j.is_null() {
        row("journal", "none".into())?;
    } else {
        let place = if j["device"].is_string() { text(&j["device"]) } else { "internal".into() };
        let (used, all) = (number(&j["blocks_used"]), number(&j["blocks"]));
        let commits = number(&j["commits"]);
        let fast = match number(&j["fast_commits"]) {
            0 => String::new(),
            n => format!(", {}", terminal::counted(n, "fast commit")),
        };
        let commits = terminal::counted(commits, "commit");
        row("journal", format!("{place}, {used} of {all} blocks in use, {commits}{fast}"))?;
        let (now, most) = (number(&j["image_bytes"]), number(&j["image_bytes_max"]));
        row("not home", format!("{} of {} in memory", sized(now), sized(most)))?;
    }
    if let Some(what) = recovery_in_words(&s["recovered"]) {
        row("recovered", what)?;
    }
    let q = &s["queue"];
    if !q.is_null() {
        row("queue", queue_in_words(q))?;
        if let Some(n) = q["writes_let_in"].as_u64() {
            row("throttled", format!("to {n} {}", if n == 1 { "write" } else { "writes" }))?;
        }
    }
    row("dirty", sized(number(&s["dirty_bytes"])))?;
    let cache = &s["cache"];
    let (now, most) = (number(&cache["bytes"]), number(&cache["bytes_max"]));
    row("cache", format!("{} of {}", sized(now), sized(most)))?;
    if number(&s["failed_writes"]) > 0 {
        let failed = terminal::counted(number(&s["failed_writes"]), "write");
        row("errors", format!("{failed} failed"))?;
    }
    for line in trouble::lines(&s["unwritten"]) {
        row("", line)?;
    }
    if s["log"].is_string() {
        row("log", text(&s["log"]))?;
    }
    Ok(())
}
