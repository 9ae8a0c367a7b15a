//! `[[workload.dd]]` and `[[workload.hdparm]]` of a scenario file.

use super::copies::{check_operands, devices, is_file};
use super::fields::Fields;
use super::keys::Table;
use super::wrong::did_you_mean;
use super::{DdSpec, HdparmSpec};

/// dd's copies.
pub(super) fn dd(workload: &Fields<'_, '_>) -> Option<Vec<DdSpec>> {
    let tables = workload.tables("dd", Table::Dd);
    let read: Vec<_> = tables.iter().map(one_dd).collect();
    read.into_iter().collect()
}

fn one_dd(fields: &Fields<'_, '_>) -> Option<DdSpec> {
    let operands = checked(fields, "operands");
    let quick = fields.value("quick").map(|_| checked(fields, "quick"));
    let (test, cold): (Option<String>, Option<bool>) = (fields.take("test"), fields.take("cold"));
    Some(DdSpec {
        test: test?,
        operands: operands?,
        quick: quick.map_or(Some(None), |quick| quick.map(Some))?,
        before: before(fields)?,
        cold: cold?,
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
    let wrong = |e| fields.wrong("line", e, "as `steadfast hdparm` has it, without its name");
    HdparmSpec::parse(&line?, before?).map_err(wrong).ok()
}

/// dd's operands of a key.
fn checked(fields: &Fields<'_, '_>, key: &str) -> Option<String> {
    let line: String = fields.take(key)?;
    let wrong = |e| fields.wrong(key, e, "dd's operands: steadfast dd --help");
    check_operands(&line).map_err(wrong).ok().map(|()| line)
}

fn before(fields: &Fields<'_, '_>) -> Option<Vec<String>> {
    let lines: Vec<String> = fields.take("before")?;
    let wrong: Vec<String> = lines.iter().filter_map(|l| check_operands(l).err()).collect();
    wrong.iter().for_each(|e| fields.wrong("before", e, "dd's operands: steadfast dd --help"));
    wrong.is_empty().then_some(lines)
}

/// Notes devices that copies and timings name and that are not there.
pub(super) fn devices_are_there(
    top: &Fields<'_, '_>,
    (dd, hdparm): (&[DdSpec], &[HdparmSpec]),
    known: &[&str],
) {
    let of_dd = dd.iter().flat_map(DdSpec::lines).flat_map(|line| devices(line));
    let of_hdparm = hdparm.iter().flat_map(|h| &h.targets).filter(|t| !is_file(t)).cloned();
    for name in of_dd.chain(of_hdparm).filter(|name| !known.contains(&name.as_str())) {
        let help = did_you_mean(&name, known.iter().copied());
        top.wrong("workload", format!("there is no device `{name}`"), help);
    }
}
