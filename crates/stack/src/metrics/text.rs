//! The lines of the metrics.

use std::fmt::Write as _;

use steadfast_vfs::foreign::line;

use crate::protocol::{Counters, LegStatus, StackCounters, StackStatus, VolumeStatus};

/// The metrics of a host.
pub(super) fn of(status: &StackStatus, counters: &StackCounters) -> String {
    let mut out = String::new();
    type CounterValue = fn(&Counters) -> f64;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of: [(&str, &str, &str, CounterValue); 8] = [
        ("reads_total", "counter", "Reads that were done.", |c| c.reads as f64),
        ("writes_total", "counter", "Writes that were done.", |c| c.writes as f64),
        ("read_bytes_total", "counter", "Bytes read.", |c| c.read_bytes as f64),
        ("written_bytes_total", "counter", "Bytes written.", |c| c.written_bytes as f64),
        ("flushes_total", "counter", "Flushes that were done.", |c| c.flushes as f64),
        ("errors_total", "counter", "Requests that failed.", |c| c.errors as f64),
        ("busy_seconds_total", "counter", "Time with a request under way.", |c| {
            c.run_ns as f64 / 1e9
        }),
        ("in_flight", "gauge", "Requests under way.", |c| c.in_flight as f64),
    ];
    let head = |out: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(out, "# HELP steadfast_{name} {help}");
        let _ = writeln!(out, "# TYPE steadfast_{name} {kind}");
    };
    head(&mut out, "up_seconds", "gauge", "Time since the host was started.");
    let _ = writeln!(out, "steadfast_up_seconds {}", seconds(status.up_ns));
    for (name, kind, help, value) in of {
        head(&mut out, name, kind, help);
        for c in &counters.of {
            let _ = writeln!(out, "steadfast_{name}{{device=\"{}\"}} {}", label(&c.name), value(c));
        }
    }
    head(&mut out, "device_present", "gauge", "1 if the device is there.");
    for device in &status.devices {
        let there = u8::from(device.problem.is_none());
        let _ =
            writeln!(out, "steadfast_device_present{{device=\"{}\"}} {there}", label(&device.name));
    }
    let help = "1 if it is assembled and each durable leg that it should have is there and Okay.";
    head(&mut out, "volume_whole", "gauge", help);
    for volume in &status.volumes {
        let (name, sound) = (label(&volume.name), u8::from(volume.is_sound()));
        let _ = writeln!(out, "steadfast_volume_whole{{volume=\"{name}\"}} {sound}");
    }
    head(
        &mut out,
        "volume_dirty_regions",
        "gauge",
        "Regions that a power cut would leave out of sync.",
    );
    for volume in &status.volumes {
        if let Some(mirror) = &volume.mirror {
            let (name, dirty) =
                (label(&volume.name), mirror.regions.dirty + mirror.regions.filling);
            let _ = writeln!(out, "steadfast_volume_dirty_regions{{volume=\"{name}\"}} {dirty}");
        }
    }
    head(
        &mut out,
        "volume_unchecked_bytes",
        "gauge",
        "Written bytes that no checksum covers, where there are checksums.",
    );
    for volume in &status.volumes {
        if let Some(mirror) = volume.mirror.as_ref().filter(|mirror| mirror.checksums) {
            let (name, bytes) = (label(&volume.name), mirror.unchecked_bytes);
            let _ = writeln!(out, "steadfast_volume_unchecked_bytes{{volume=\"{name}\"}} {bytes}");
        }
    }
    head(
        &mut out,
        "leg_checksum_errors_total",
        "counter",
        "Blocks of a leg that were not what was written, and damaged checksums.",
    );
    for volume in &status.volumes {
        for leg in volume.mirror.iter().filter(|m| m.checksums).flat_map(|m| &m.legs) {
            let labels = leg_labels(volume, leg);
            let errors = leg.counters.checksum_errors;
            let _ = writeln!(out, "steadfast_leg_checksum_errors_total{{{labels}}} {errors}");
        }
    }
    head(&mut out, "problems", "gauge", "What needs attention: devices, volumes, legs and mounts.");
    let _ = writeln!(out, "steadfast_problems {}", status.problems().len());
    head(&mut out, "mount_up", "gauge", "1 if the file system is mounted.");
    for mount in &status.mounts {
        let labels =
            format!("mount=\"{}\",volume=\"{}\"", label(&mount.name), label(&mount.volume));
        let _ = writeln!(out, "steadfast_mount_up{{{labels}}} {}", u8::from(mount.mounted));
    }
    head(&mut out, "leg_lacking_bytes", "gauge", "Bytes that a leg lacks.");
    for volume in &status.volumes {
        for leg in volume.mirror.iter().flat_map(|m| &m.legs) {
            let labels = leg_labels(volume, leg);
            let _ = writeln!(out, "steadfast_leg_lacking_bytes{{{labels}}} {}", leg.lacking_bytes);
        }
    }
    out
}

fn leg_labels(volume: &VolumeStatus, leg: &LegStatus) -> String {
    format!("volume=\"{}\",leg=\"{}\"", label(&volume.name), label(&leg.component))
}

/// A value of a label: names come from labels on disks, and who looks may sit at a terminal.
fn label(text: &str) -> String {
    line(text.as_bytes()).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_where_it_should() {
        assert_eq!(label("a\"b\\c\n\u{9b}"), "a\\\"b\\\\c\\\\012\\\\302\\\\233");
    }
}
