//! Several requests in flight.

use std::sync::Arc;
use std::time::Duration;

use steadfast_runtime::{Mutex, sleep, spawn, yield_now};

use super::{Device, Verdict, area_blocks, block, data, expect, same, write};
use crate::rng::Rng;
use crate::{BlockError, Completion, DeviceInfo, Request};

pub(super) fn queue(device: &Device, info: &DeviceInfo) -> Verdict {
    let (b, blocks) = (block(info), area_blocks(info).min(2048));
    // Every block once, in a scattered order: a prime stride that does not divide the count.
    let stride = if blocks.is_multiple_of(1103) { 1109 } else { 1103 };
    let order: Vec<u64> = (0..blocks).map(|i| i * stride % blocks).collect();
    for pass in 1..=3 {
        let in_flight: Vec<Completion> = order
            .iter()
            .map(|i| {
                let (offset, fua) = (i * b, i % 17 == 0);
                device.submit(Request::Write { offset, data: data(pass, offset, b).into(), fua })
            })
            .collect();
        let flush = device.submit(Request::Flush);
        Completion::wait_all(&in_flight).map_err(|e| format!("a write in flight failed: {e}"))?;
        flush.wait().map_err(|e| format!("a flush in flight failed: {e}"))?;
        let reads: Vec<(u64, Completion)> = order
            .iter()
            .map(|i| (i * b, device.submit(Request::Read { offset: i * b, len: b })))
            .collect();
        for (offset, read) in reads {
            let got = read.wait().map_err(|e| format!("a read in flight failed: {e}"))?;
            same(&got, &data(pass, offset, b), offset, &format!("pass {pass}"))?;
        }
    }
    Ok(())
}

pub(super) fn tasks(device: &Device, info: &DeviceInfo) -> Verdict {
    const TASKS: u64 = 6;
    let blocks = area_blocks(info).min(TASKS * 128) / TASKS;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (device, info) = (Arc::clone(device), info.clone());
            let body = move || mix(&device, &info, task * blocks, blocks, task);
            spawn(format!("conformance {task}"), body)
        })
        .collect();
    let ended: Vec<_> = tasks.into_iter().map(|task| task.join()).collect();
    for (task, verdict) in ended.into_iter().enumerate() {
        let verdict = verdict.map_err(|e| format!("{e:?}")).and_then(|v| v);
        verdict.map_err(|e| format!("task {task}: {e}"))?;
    }
    Ok(())
}

/// A random mix in one task's own range, against a model of the bytes.
fn mix(device: &Device, info: &DeviceInfo, first: u64, blocks: u64, task: u64) -> Verdict {
    let b = block(info);
    let mut model = data(1000 + task, first * b, blocks * b);
    write(device, first * b, &model)?;
    let mut rng = Rng::new(task);
    for round in 0..150 {
        let from = rng.below(blocks);
        let count = 1 + rng.below((blocks - from).min(16));
        let offset = (first + from) * b;
        let range = (from * b) as usize..((from + count) * b) as usize;
        match rng.below(10) {
            0 => device.flush().map_err(|e| format!("flush: {e}"))?,
            1..=5 => {
                let new = data(10_000 * (task + 1) + round, offset, count * b);
                let fua = rng.percent(10);
                let request = Request::Write { offset, data: new.clone().into(), fua };
                device.submit(request).wait().map_err(|e| format!("write: {e}"))?;
                model[range].copy_from_slice(&new);
            }
            _ => expect(device, offset, &model[range], &format!("round {round}"))?,
        }
        if rng.percent(20) {
            yield_now();
        }
    }
    expect(device, first * b, &model, "a task's range at the end")
}

pub(super) fn overlap(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    let mut rng = Rng::new(5);
    let span = area_blocks(info).min(64);
    for round in 0..24 {
        let base = data(1, 0, span * b);
        write(device, 0, &base)?;
        let writes: Vec<(u64, Vec<u8>)> = (0..6)
            .map(|i| {
                let from = rng.below(span);
                let count = 1 + rng.below(span - from);
                (from, data(10 + i, from * b, count * b))
            })
            .collect();
        let in_flight: Vec<Completion> = writes
            .iter()
            .map(|(from, new)| {
                let (offset, data) = (from * b, new.clone().into());
                device.submit(Request::Write { offset, data, fua: from % 4 == 0 })
            })
            .collect();
        Completion::wait_all(&in_flight).map_err(|e| format!("an overlapping write: {e}"))?;
        let got = super::read(device, 0, span * b)?;
        for i in 0..span {
            let at = (i * b) as usize..((i + 1) * b) as usize;
            let piece = |(from, new): &(u64, Vec<u8>)| {
                let skip = (i.checked_sub(*from)? * b) as usize;
                new.get(skip..skip + b as usize).map(<[u8]>::to_vec)
            };
            let mut written = writes.iter().filter_map(piece).peekable();
            // Old contents are right only where nobody wrote.
            let right = match written.peek() {
                None => got[at.clone()] == base[at.clone()],
                Some(_) => written.any(|w| w == got[at.clone()]),
            };
            if !right {
                return Err(format!("round {round}: block {i} is none of the writes to it"));
            }
        }
        expect(device, 0, &got, "second read after overlapping writes")?;
    }
    Ok(())
}

pub(super) fn hooks(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    let called = Arc::new(Mutex::new(Vec::new()));
    let requests = [
        (Request::Flush, 0, true),
        (Request::Read { offset: info.size, len: b }, 0, false),
        (Request::Read { offset: 0, len: 2 * b }, 2 * b as usize, info.initialised),
    ];
    for (i, (request, len, good)) in requests.into_iter().enumerate() {
        let op = request.op();
        let completion = device.submit(request);
        for order in 0..2 {
            let called = Arc::clone(&called);
            completion.on_done(move |r| called.lock().push((i, order, r.clone())));
        }
        let answer = completion.wait();
        if good && answer.as_ref().map(|a| a.len()) != Ok(len) {
            return Err(format!("request {i} ({op}): {answer:?}, {len} bytes expected"));
        }
        let late = Arc::clone(&called);
        completion.on_done(move |r| late.lock().push((i, 2, r.clone())));
        let hooks = std::mem::take(&mut *called.lock());
        let want: Vec<_> = (0..3).map(|order| (i, order, answer.clone())).collect();
        if hooks != want {
            let got: Vec<_> = hooks.iter().map(|h| h.1).collect();
            return Err(format!(
                "request {i} ({op}): hooks 0, 1, 2 expected once each, got {got:?}"
            ));
        }
        if completion.wait() != answer || !completion.is_done() {
            return Err(format!("request {i} ({op}): a second wait gives another answer"));
        }
    }
    Ok(())
}

pub(super) fn dropped(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    write(device, 0, &data(1, 0, 8 * b))?;
    let done = Arc::new(Mutex::new(Vec::<Result<(), BlockError>>::new()));
    let mut pending = Vec::new();
    for i in 0..8 {
        let request = Request::Write { offset: i * b, data: data(2, i * b, b).into(), fua: false };
        let completion = device.submit(request);
        let done = Arc::clone(&done);
        completion.on_done(move |r| done.lock().push(r.clone().map(drop)));
        // Half of the completions are dropped at once; the others complete when time has passed.
        if i % 2 == 0 {
            pending.push(completion);
        }
    }
    Completion::wait_all(&pending).map_err(|e| format!("write: {e}"))?;
    // The dropped ones must come to an end as well, within ten seconds.
    for _ in 0..10_000 {
        if done.lock().len() == 8 {
            break;
        }
        sleep(Duration::from_millis(1));
    }
    let done = done.lock();
    if done.len() != 8 || done.iter().any(Result::is_err) {
        return Err(format!("8 writes submitted, answered: {:?}", *done));
    }
    drop(done);
    expect(device, 0, &data(2, 0, 8 * b), "after dropping completions")
}
