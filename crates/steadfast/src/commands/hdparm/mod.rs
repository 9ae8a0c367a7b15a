//! `steadfast hdparm`: hdparm's timings of devices and files, here and on stacks.

mod host;

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use steadfast_bench::hdparm::{self, CopyCost, DeviceReader, FileReader, NoTiming, Readable};
use steadfast_pagecache::Settings;
use steadfast_vfs::{OpenFlags, path};

use super::dd;
use super::site::{ImageAccess, Site, SiteArgs};
use crate::{CommandEnd, Usage, terminal};

/// Times reads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  steadfast hdparm -Tt /dev/sda
  steadfast hdparm -t --direct disk.img
  steadfast hdparm -Tt --stack nvram-journal card disk
  steadfast hdparm -t --stack nvram-journal --variant external \\
      --first 'if=/dev/zero of=/file bs=1M count=64' /file

Both read 2 MiB at a time: -T the first 2 MiB from memory, for 2 seconds; -t in
order from the device, for 3 seconds or to the end. 1 MB is 2^20 bytes.
With --image and --stack a name that begins with / is a file there, any other a
device of the scenario. -T and -t together measure -T first. Every other option
of hdparm is refused: they are for drives, not for timings.")]
pub struct Hdparm {
    /// Reads from the cache: memory and processor
    #[arg(short = 'T')]
    pub cached: bool,
    /// Reads from the device
    #[arg(short = 't')]
    pub disk: bool,
    /// Past the page cache (O_DIRECT)
    #[arg(long)]
    pub direct: bool,
    /// With -t: begin so many GiB from the start
    #[arg(long, value_name = "GIB")]
    pub offset: Option<u64>,
    #[command(flatten)]
    pub site: SiteArgs,
    /// First run this dd silently, and drop the page cache
    #[arg(long, value_name = "OPERANDS")]
    pub first: Vec<String>,
    /// Devices or files
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<String>,
}

/// Runs it.
pub fn run(args: Hdparm, out: &mut dyn Write) -> Result<CommandEnd> {
    if !args.cached && !args.disk {
        usage!("hdparm: say what to time: -T, -t or both");
    }
    let site = args.site.clone();
    let wants = ImageAccess { writes: !args.first.is_empty(), noatime: true, data_bytes: None };
    let (text, outcome) = site.at(wants, move |site| {
        dd::before(site, &args.first)?;
        let mut text = String::new();
        let mut outcome = CommandEnd::Good;
        for device in &args.devices {
            text += &format!("\n{device}:\n");
            let all = open(site, &args, device).and_then(|mut from| {
                timings(&args, &mut *from, &mut text).map_err(anyhow::Error::from)
            });
            if let Err(e) = all {
                if e.is::<Usage>() {
                    return Err(e);
                }
                terminal::error(&e.context(device.clone()));
                outcome = CommandEnd::Problem;
            }
        }
        Ok((text, outcome))
    })?;
    out.write_all(text.as_bytes())?;
    Ok(outcome)
}

fn timings(args: &Hdparm, from: &mut dyn Readable, text: &mut String) -> Result<(), NoTiming> {
    if args.cached {
        let how = if args.direct { "O_DIRECT " } else { "" };
        *text += &format!(" Timing {how}cached reads:   {}\n", hdparm::cached(from)?.line());
    }
    if args.disk {
        let how = if args.direct { "O_DIRECT" } else { "buffered" };
        let place = args.offset.map(|gib| format!(" (offset {gib} GB)")).unwrap_or_default();
        let timing = hdparm::disk(from, args.offset.unwrap_or(0).saturating_mul(1 << 30))?;
        *text += &format!(" Timing {how} disk reads{place}: {}\n", timing.line());
    }
    Ok(())
}

fn open(site: &Site, args: &Hdparm, name: &str) -> Result<Box<dyn Readable>> {
    if site.is_here() {
        return Ok(Box::new(host::HostReader::open(name, args.direct)?));
    }
    if !name.starts_with('/') {
        let name = name.strip_prefix("device:").unwrap_or(name);
        let settings = Settings::default();
        let cost = CopyCost {
            ns_per_kib: settings.cpu_copy_ns_per_kib,
            ns_per_page: settings.cpu_page_ns,
        };
        return Ok(Box::new(DeviceReader::new(site.device(name)?, args.direct, cost)));
    }
    let fs = site.fs()?;
    let attr = path::resolve(&*fs, name.as_bytes(), true)?;
    let mut flags = OpenFlags::READ;
    flags.set(OpenFlags::DIRECT, args.direct);
    let fh = fs.open(attr.ino, flags)?;
    Ok(Box::new(FileReader::new(Arc::clone(&fs), fh, attr.size)))
}
