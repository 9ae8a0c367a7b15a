//! `steadfast transact` and `steadfast rollback`: the transaction points of a mount.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use steadfast_ext4::{LastPoint, RolledBack};
use steadfast_vfs::{FileSystem, FsError, TransactMask, TransactPolicy};

use super::served::ServedMount;
use super::{control, holders};
use crate::{CommandEnd, Usage, terminal};
use steadfast_vfs::path::shown;

/// How long a rollback waits for files that were just closed: the kernel reports it later.
const CLOSING: Duration = Duration::from_secs(1);

/// Makes a transaction point; with `mask`, changes when they are made by themselves instead.
pub fn transact(mountpoint: &Path, mask: Option<&str>, out: &mut dyn Write) -> Result<CommandEnd> {
    let Some(mask) = mask else {
        ask(mountpoint, &json!({ "do": "transact" }))?;
        return Ok(CommandEnd::Good);
    };
    let policy: TransactPolicy = mask.parse().map_err(|e| Usage(format!("--mask {mask}: {e}")))?;
    let request = json!({ "do": "transact-mask", "mask": policy.to_string() });
    let answer = ask(mountpoint, &request)?;
    let of = |field: &str| shown(answer[field].as_str().unwrap_or_default().as_bytes());
    writeln!(out, "transact={} (was: {})", of("mask"), of("before"))?;
    Ok(CommandEnd::Good)
}

/// Goes back to the last transaction point; says to which, and what that took.
pub fn rollback(mountpoint: &Path, out: &mut dyn Write) -> Result<CommandEnd> {
    let answer = ask(mountpoint, &json!({ "do": "rollback" }))
        .map_err(|e| holders::named(e, "files are open", mountpoint))?;
    if let Some(message) = answer["message"].as_str() {
        writeln!(out, "{}", terminal::harmless(message))?;
    }
    Ok(CommandEnd::Good)
}

fn ask(mountpoint: &Path, request: &Value) -> Result<Value> {
    let shown = mountpoint.display();
    let (_, running) = control::at(mountpoint)?;
    let running = running.ok_or_else(|| Usage(format!("{shown}: no mount of ours")))?;
    if running.status["transact"].is_null() {
        let what = match running.status["data"].as_str() {
            Some(data) => format!("no transaction points with data={data}: mount data=transact"),
            None => "no transaction points without a journal: give it one (tune2fs -j)".into(),
        };
        usage!("{shown}: {what}");
    }
    control::ask(&running.socket, request, None)
}

/// The mount's side: what a request of this module asks for; `None` if it is none.
pub fn answer(request: &Value, served: &ServedMount) -> Option<Result<Value>> {
    Some(match request["do"].as_str()? {
        "transact" => served.fs.transact().map(|()| json!({})).map_err(Into::into),
        "transact-mask" => change_mask(&request["mask"], served),
        "rollback" => go_back(served).map(|message| json!({ "message": message })),
        _ => return None,
    })
}

/// The policy of a mount, for its status; null without transaction points.
pub fn mask(served: &ServedMount) -> Value {
    served.fs.transact_policy().map_or(Value::Null, |policy| policy.to_string().into())
}

/// What to say of a mount whose unmounting discards; `None` if it does not.
pub fn discards_at_unmount(served: &ServedMount) -> Option<String> {
    let policy = served.fs.transact_policy().ok()?;
    let discards = !policy.mask.contains(TransactMask::UMOUNT);
    discards.then(|| {
        format!(
            "{}: no-umount: unmounting will discard what came after the last transaction point",
            served.source
        )
    })
}

fn change_mask(mask: &Value, served: &ServedMount) -> Result<Value> {
    let before = served.fs.transact_policy()?;
    let words = mask.as_str().unwrap_or_default();
    served.fs.set_transact_policy(words.parse::<TransactPolicy>()?)?;
    let now = served.fs.transact_policy()?;
    tracing::info!("transact={now}");
    Ok(json!({ "mask": now.to_string(), "before": before.to_string() }))
}

fn go_back(served: &ServedMount) -> Result<String> {
    // Before, to refuse where the kernel cannot be notified: it would show what is gone.
    let invalidated = served.invalidator.everything();
    invalidated.context(
        "this kernel (before 6.16) cannot be made to forget names: unmount with umount out of the \
         mask (steadfast transact --mask no-umount), which goes back too, and mount again",
    )?;
    let until = Instant::now() + CLOSING;
    let done = loop {
        match served.fs.roll_back() {
            Err(FsError::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            done => break done?,
        }
    };
    let message = format!("{}: {}", served.source, in_words(&done));
    tracing::info!("{message}");
    served.invalidator.everything()?;
    Ok(message)
}

/// Where a rollback went, and what it took.
fn in_words(done: &RolledBack) -> String {
    let taken = match done.taken.is_nothing() {
        true => "nothing had changed since".to_owned(),
        false => format!("{} taken back", done.taken),
    };
    let point = match &done.point {
        Some(point) => format!("the transaction point {}", point_in_words(point)),
        None => "the last transaction point".to_owned(),
    };
    format!("went back to {point}: {taken}")
}

/// A point by its time and the journal's number of it.
fn point_in_words(point: &LastPoint) -> String {
    let number = point.transaction;
    let made = i64::try_from(point.at).ok().and_then(|s| jiff::Timestamp::from_second(s).ok());
    let made = made.map_or_else(|| format!("second {}", point.at), |time| time.to_string());
    format!("of {made} (transaction {number})")
}

/// The last point, for the status; null without one.
pub fn last_point(served: &ServedMount) -> Value {
    served.fs.last_point().map_or(Value::Null, |point| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(point.at, |now| now.as_secs());
        json!({
            "transaction": point.transaction.0,
            "at": point.at,
            "seconds_ago": now.saturating_sub(point.at),
        })
    })
}
