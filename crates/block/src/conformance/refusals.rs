//! Requests that must be refused, with the right error and without effect.

use super::{Device, Verdict, area_blocks, block, data, expect, read, write};
use crate::{BlockError, DeviceInfo, Payload, Request};

#[derive(Clone, Copy, PartialEq, Debug)]
enum BadRequest {
    Misaligned,
    OutOfRange,
    ReadOnly,
}

/// Byte ranges that no device takes, and why.
fn bad_ranges(info: &DeviceInfo) -> Vec<(u64, u64, BadRequest)> {
    let (b, size) = (block(info), info.size);
    let last_aligned = u64::MAX - (b - 1);
    vec![
        (0, 0, BadRequest::Misaligned),
        (size, 0, BadRequest::Misaligned),
        (1, b, BadRequest::Misaligned),
        (b / 2, b, BadRequest::Misaligned),
        (0, b - 1, BadRequest::Misaligned),
        (0, b + 1, BadRequest::Misaligned),
        (b, b / 2, BadRequest::Misaligned),
        (size, b, BadRequest::OutOfRange),
        (size - b, 2 * b, BadRequest::OutOfRange),
        (size + b, b, BadRequest::OutOfRange),
        (last_aligned, b, BadRequest::OutOfRange),
    ]
}

fn refused(device: &Device, request: Request, why: BadRequest) -> Verdict {
    let shown = match request.range() {
        Some((offset, len)) => format!("{} of {len} bytes at byte {offset}", request.op()),
        None => request.op().to_owned(),
    };
    let got = match device.submit(request).wait() {
        Ok(_) => return Err(format!("{shown} was accepted, {why:?} expected")),
        Err(e) => e,
    };
    let right = match got {
        BlockError::Misaligned { .. } => why == BadRequest::Misaligned,
        BlockError::OutOfRange { .. } => why == BadRequest::OutOfRange,
        BlockError::ReadOnly { .. } => why == BadRequest::ReadOnly,
        BlockError::Io { .. } | BlockError::Gone { .. } => false,
    };
    if right { Ok(()) } else { Err(format!("{shown}: {why:?} expected, got: {got}")) }
}

pub(super) fn reads(device: &Device, info: &DeviceInfo) -> Verdict {
    for (offset, len, why) in bad_ranges(info) {
        refused(device, Request::Read { offset, len }, why)?;
    }
    // A length whose end does not fit in 64 bits, and that nobody could allocate.
    let b = block(info);
    for (offset, len) in [(b, u64::MAX - (b - 1)), (0, u64::MAX - (b - 1)), (0, info.size + b)] {
        refused(device, Request::Read { offset, len }, BadRequest::OutOfRange)?;
    }
    Ok(())
}

pub(super) fn changes(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    let area = area_blocks(info) * b;
    let (head, tail) = (data(1, 0, 4 * b), data(1, info.size - 4 * b, 4 * b));
    write(device, 0, &head)?;
    write(device, info.size - 4 * b, &tail)?;
    let middle = read(device, 4 * b, area.min(info.size - 8 * b))?;
    for (offset, len, why) in bad_ranges(info) {
        let payload: Payload =
            data(2, 0, len.next_multiple_of(512))[..len as usize].to_vec().into();
        for fua in [false, true] {
            refused(device, Request::Write { offset, data: payload.clone(), fua }, why)?;
        }
        refused(device, Request::Discard { offset, len }, why)?;
    }
    let beyond = Request::Discard { offset: b, len: u64::MAX - (b - 1) };
    refused(device, beyond, BadRequest::OutOfRange)?;
    expect(device, 0, &head, "first blocks after refusals")?;
    expect(device, info.size - 4 * b, &tail, "last blocks after refusals")?;
    expect(device, 4 * b, &middle, "middle after refusals")
}

pub(super) fn not_sticky(device: &Device, info: &DeviceInfo) -> Verdict {
    let b = block(info);
    refused(device, Request::Read { offset: info.size, len: b }, BadRequest::OutOfRange)?;
    let bad = Request::Write { offset: 1, data: vec![1; b as usize].into(), fua: true };
    refused(device, bad, BadRequest::Misaligned)?;
    let good = data(3, b, b);
    write(device, b, &good)?;
    device.flush().map_err(|e| format!("a flush after refusals failed: {e}"))?;
    expect(device, b, &good, "a block written after refusals")
}

pub(super) fn read_only(device: &Device, info: &DeviceInfo) -> Verdict {
    if !info.read_only {
        return Ok(());
    }
    let b = block(info);
    let before = if info.initialised { Some(read(device, 0, 4 * b)?) } else { None };
    for fua in [false, true] {
        let write = Request::Write { offset: b, data: data(1, b, b).into(), fua };
        refused(device, write, BadRequest::ReadOnly)?;
    }
    refused(device, Request::Discard { offset: b, len: b }, BadRequest::ReadOnly)?;
    before.map_or(Ok(()), |before| expect(device, 0, &before, "after refused changes"))
}
