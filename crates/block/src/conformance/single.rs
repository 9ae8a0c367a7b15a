//! One request at a time.

use super::{Device, Verdict, area_blocks, block, data, expect, in_parts, read, same, write};
use crate::rng::Rng;
use crate::{DeviceInfo, Payload, Request};

pub(super) fn description(device: &Device, info: &DeviceInfo) -> Verdict {
    let check = |ok: bool, what: String| if ok { Ok(()) } else { Err(what) };
    let b = info.logical_block;
    check(b.is_power_of_two() && b >= 512, format!("logical block is {b} bytes"))?;
    check(
        info.size.is_multiple_of(block(info)),
        format!("{} bytes are not whole blocks", info.size),
    )?;
    let p = info.physical_block;
    check(p.is_power_of_two() && p >= b, format!("physical block is {p} bytes, logical {b}"))?;
    let a = info.atomic_write;
    check(a.is_power_of_two(), format!("atomic write is {a} bytes"))?;
    check(!info.name.is_empty() && !info.model.is_empty(), "has no name or no model".into())?;
    let again = device.info();
    check(again == *info, format!("described as {info:?}, then as {again:?}"))
}

pub(super) fn stable(device: &Device, info: &DeviceInfo) -> Verdict {
    // A card that was never initialised may answer with errors or noise.
    if !info.initialised {
        return Ok(());
    }
    let len = area_blocks(info) * block(info);
    let first = read(device, 0, len)?;
    expect(device, 0, &first, "second read of the whole range")?;
    let mut rng = Rng::new(7);
    for _ in 0..16 {
        let from = rng.below(area_blocks(info));
        let count = 1 + rng.below(area_blocks(info) - from);
        let (at, len) = (from * block(info), count * block(info));
        expect(device, at, &first[at as usize..(at + len) as usize], "read of a part")?;
    }
    Ok(())
}

pub(super) fn flush_alone(device: &Device, _info: &DeviceInfo) -> Verdict {
    for nth in 1..=3 {
        let answer = device.submit(Request::Flush).wait();
        let answer = answer.map_err(|e| format!("flush {nth} without writes failed: {e}"))?;
        if !answer.is_empty() {
            return Err(format!("flush {nth} returned {} bytes", answer.len()));
        }
    }
    Ok(())
}

pub(super) fn read_after_write(device: &Device, info: &DeviceInfo) -> Verdict {
    let (b, blocks) = (block(info), area_blocks(info).min(256));
    let mut model = data(1, 0, blocks * b);
    write(device, 0, &model)?;
    let mut rng = Rng::new(11);
    for round in 0..200 {
        let from = rng.below(blocks);
        let count = 1 + rng.below((blocks - from).min(24));
        let range = (from * b) as usize..((from + count) * b) as usize;
        if rng.percent(60) {
            let new = data(2 + round, from * b, count * b);
            let request =
                Request::Write { offset: from * b, data: new.clone().into(), fua: rng.percent(20) };
            let answer = device.submit(request).wait().map_err(|e| format!("write: {e}"))?;
            if !answer.is_empty() {
                return Err(format!("a write returned {} bytes", answer.len()));
            }
            model[range].copy_from_slice(&new);
        } else {
            expect(device, from * b, &model[range], &format!("read in round {round}"))?;
        }
    }
    expect(device, 0, &model, "all blocks at the end")
}

pub(super) fn into_memory(device: &Device, info: &DeviceInfo) -> Verdict {
    let (b, blocks) = (block(info), area_blocks(info).min(256));
    let model = data(1, 0, blocks * b);
    write(device, 0, &model)?;
    // Memory that begins anywhere, and what lies beside it.
    for (skip, from, count) in [(0, 0, 1), (1, 1, 2), (512, blocks / 2, blocks / 2)] {
        let len = (count * b) as usize;
        let mut memory = vec![0xa5; skip + len + 1];
        let (offset, out) = (from * b, &mut memory[skip..skip + len]);
        device.read_into(offset, out).map_err(|e| format!("a good read failed: {e}"))?;
        same(out, &model[offset as usize..][..len], offset, "into memory")?;
        if memory[..skip].iter().chain(&memory[skip + len..]).any(|byte| *byte != 0xa5) {
            return Err("a read has changed memory beside its own".into());
        }
    }
    let mut short = vec![0; b as usize - 1];
    match (device.read_into(0, &mut short), device.read_into(info.size, &mut vec![0; b as usize])) {
        (Err(_), Err(_)) => Ok(()),
        _ => Err("a bad read into memory was accepted".into()),
    }
}

pub(super) fn ends(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    let last = info.size - b;
    write(device, 0, &data(1, 0, b))?;
    write(device, last, &data(2, last, b))?;
    expect(device, 0, &data(1, 0, b), "first block")?;
    expect(device, last, &data(2, last, b), "last block")?;
    write(device, last - b, &data(3, last - b, 2 * b))?;
    expect(device, last - b, &data(3, last - b, 2 * b), "last two blocks")
}

pub(super) fn parts(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info) as usize;
    let len = 8 * b;
    let whole = data(5, 0, len as u64);
    let odd: Vec<usize> = (1..len).step_by(b / 2 + 37).collect();
    let many: Vec<usize> = (1..len).step_by(7).collect();
    let cuts: [&[usize]; 6] = [&[], &[b], &[1, 2, 3], &[b, 2 * b, 3 * b + 1, 7 * b], &odd, &many];
    for (i, cut) in cuts.into_iter().enumerate() {
        write(device, 0, &data(6, 0, len as u64))?;
        device.write(0, in_parts(&whole, cut)).map_err(|e| format!("cut {i}: {e}"))?;
        expect(device, 0, &whole, &format!("payload of {} parts", cut.len() + 1))?;
    }
    // Parts that share memory: the same page several times.
    let one = bytes::Bytes::from(data(7, 0, b as u64));
    let thrice: Payload = (0..3).map(|_| one.clone()).collect();
    device.write(0, thrice).map_err(|e| e.to_string())?;
    expect(device, 0, &[&one[..], &one[..], &one[..]].concat(), "the same part three times")
}

pub(super) fn large(device: &Device, info: &DeviceInfo) -> Verdict {
    let len = area_blocks(info) * block(info);
    let all = data(9, 0, len);
    write(device, 0, &all)?;
    same(&read(device, 0, len)?, &all, 0, "one request over the whole range")
}

pub(super) fn durable(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    let flush = |when: &str| device.flush().map_err(|e| format!("flush {when} failed: {e}"));
    let mut model = Vec::new();
    for i in 0..32 {
        let new = data(100 + i, i * b, b);
        let request = Request::Write { offset: i * b, data: new.clone().into(), fua: i % 2 == 1 };
        device.submit(request).wait().map_err(|e| format!("write {i} failed: {e}"))?;
        model.extend(new);
        if i % 5 == 0 {
            flush("between writes")?;
        }
    }
    flush("at the end")?;
    flush("a second time")?;
    expect(device, 0, &model, "after the flush")
}

pub(super) fn discard(device: &Device, info: &DeviceInfo) -> Verdict {
    let (b, blocks) = (block(info), area_blocks(info).min(96));
    let old = data(1, 0, blocks * b);
    write(device, 0, &old)?;
    let (from, to) = (blocks / 3, 2 * blocks / 3);
    device.discard(from * b, (to - from) * b).map_err(|e| format!("a good discard failed: {e}"))?;
    let got = read(device, 0, blocks * b)?;
    for i in 0..blocks {
        let range = (i * b) as usize..((i + 1) * b) as usize;
        let (got, old) = (&got[range.clone()], &old[range]);
        let zeros = (from..to).contains(&i) && got.iter().all(|byte| *byte == 0);
        if !zeros {
            same(got, old, i * b, "a block after a discard")?;
        }
    }
    expect(device, 0, &got, "second read after a discard")?;
    write(device, from * b, &data(2, from * b, 2 * b))?;
    expect(device, from * b, &data(2, from * b, 2 * b), "blocks written after a discard")?;
    device.discard(0, info.size).map_err(|e| format!("discarding the whole device: {e}"))?;
    write(device, 0, &old)?;
    expect(device, 0, &old, "written after discarding everything")
}
