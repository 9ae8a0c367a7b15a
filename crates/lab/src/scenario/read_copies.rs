//! `[[workload.dd]]` and `[[workload.hdparm]]` of a scenario file.

use super::copies::{check_operands, devices, is_file};
use super::fields::Fields;
use super::keys::Table;
use super::wrong::did_you_mean;
use super::{DdSpec, HdparmSpec, LineError};

/// dd's copies.
pub(super) fn dd(workload: &Fields<'_, '_>) -> Option<Vec<DdSpec>> {
    let tables = workload.tables("dd", Table::Dd);
    let read: Vec<_> = tables.iter().map(one_dd).collect();
    // A row is identified by its name, and so is a published figure.
    let mut names: Vec<&str> = Vec::new();
    for (spec, fields) in read.iter().zip(&tables) {
        let Some(spec) = spec else { continue };
        if spec.test.starts_with("hdparm ") {
            fields.wrong("test", "what begins with `hdparm ` is hdparm's", "another name");
        }
        if names.contains(&spec.test.as_str()) {
            fields.wrong("test", format!("two tests are called `{}`", spec.test), "");
        }
        names.push(&spec.test);
    }
    read.into_iter().collect()
}

fn one_dd(fields: &Fields<'_, '_>) -> Option<DdSpec> {
    let operands = checked(fields, "operands");
    let quick = fields.value("quick").map(|_| checked(fields, "quick"));
    let (test, cold): (Option<String>, Option<bool>) = (fields.take("test"), fields.take("cold"));
    let variants = fields.take("variants");
    Some(DdSpec {
        test: test?,
        operands: operands?,
        quick: quick.map_or(Some(None), |quick| quick.map(Some))?,
        before: before(fields)?,
        cold: cold?,
        variants: variants?,
    })
}

/// hdparm's timings.
pub(super) fn hdparm(workload: &Fields<'_, '_>) -> Option<Vec<HdparmSpec>> {
    let tables = workload.tables("hdparm", Table::Hdparm);
    let read: Vec<_> = tables.iter().map(one_hdparm).collect();
    read.into_iter().collect()
}

fn one_hdparm(fields: &Fields<'_, '_>) -> Option<HdparmSpec> {
    let (line, before): (Option<String>, _) = (fields.take("line"), before(fields));
    let line = line?;
    let help = "as `steadfast hdparm` has it, without its name";
    let wrong = |e: LineError| fields.wrong_line("line", &line, &e.to_string(), help);
    HdparmSpec::parse(&line, before?).map_err(wrong).ok()
}

/// dd's operands of a key.
fn checked(fields: &Fields<'_, '_>, key: &str) -> Option<String> {
    let line: String = fields.take(key)?;
    let wrong = |e: LineError| fields.wrong_line(key, &line, &e.to_string(), HELP);
    check_operands(&line).map_err(wrong).ok()?;
    Some(line)
}

fn before(fields: &Fields<'_, '_>) -> Option<Vec<String>> {
    let lines: Vec<String> = fields.take("before")?;
    let wrong = lines.iter().filter_map(|line| Some((line, check_operands(line).err()?)));
    let wrong: Vec<(&String, LineError)> = wrong.collect();
    let none = wrong.is_empty();
    wrong.into_iter().for_each(|(line, e)| fields.wrong_line("before", line, &e.to_string(), HELP));
    none.then_some(lines)
}

const HELP: &str = "dd's operands: steadfast dd --help";

/// Notes variants that a workload names and that are not there.
pub(super) fn variants_are_there<'a>(
    top: &Fields<'_, '_>,
    named: impl Iterator<Item = &'a String>,
    variants: &[&str],
) {
    for name in named.filter(|name| !variants.contains(&name.as_str())) {
        let help = did_you_mean(name, variants.iter().copied());
        top.wrong("workload", format!("there is no variant `{name}`"), help);
    }
}

/// Notes devices that copies and timings name and that are not there.
pub(super) fn devices_are_there(
    top: &Fields<'_, '_>,
    (dd, hdparm): (&[DdSpec], &[HdparmSpec]),
    known: &[&str],
    variants: &[&str],
) {
    variants_are_there(top, dd.iter().flat_map(|spec| &spec.variants), variants);
    let of_dd = dd.iter().flat_map(DdSpec::lines).flat_map(|line| devices(line));
    let of_hdparm = hdparm.iter().flat_map(|h| &h.targets).filter(|t| !is_file(t)).cloned();
    for name in of_dd.chain(of_hdparm).filter(|name| !known.contains(&name.as_str())) {
        let help = did_you_mean(&name, known.iter().copied());
        top.wrong("workload", format!("there is no device `{name}`"), help);
    }
}
