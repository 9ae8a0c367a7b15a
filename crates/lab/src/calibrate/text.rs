//! What is printed of a calibration, and the file of the device.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::Value;
use steadfast_devices::model::ModelParams;
use steadfast_vfs::foreign::line;

use super::figures::Figure;
use super::fit::Provenance;
use super::{Agreement, Calibration, DEMERIT_MAX};
use crate::wrap::wrapped;

/// Above this, in % of the mean, two runs of the mix were no measurement of one thing.
const UNSTEADY: f64 = 50.0;

/// A number of about four digits.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// The parameters as their file has them: floats of four digits.
pub(super) fn rounded(params: &ModelParams) -> Option<ModelParams> {
    let mut table = serde_json::to_value(params).ok()?;
    for value in table.as_object_mut()?.values_mut().filter(|value| value.is_f64()) {
        *value = short(value.as_f64()?).parse::<f64>().ok()?.into();
    }
    serde_json::from_value(table).ok()
}

impl Figure {
    /// As text: the median, the range of the rounds, and how many requests there were.
    fn text(&self) -> String {
        let Figure { unit, n, rounds, .. } = self;
        let [value, low, high] = [self.value, self.low, self.high].map(short);
        let range = match rounds {
            1 => String::new(),
            _ => format!(" ({low} to {high} in {rounds} rounds)"),
        };
        format!("{value} {unit}{range}, n {n}")
    }
}

impl Provenance {
    fn text(&self) -> String {
        match self {
            Provenance::Said(how) => how.clone(),
            Provenance::Probes { figure, how } => {
                let how = if how.is_empty() { String::new() } else { format!(", {how}") };
                format!("measured: {}{how}: {}", figure.name, figure.text())
            }
        }
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

impl Calibration {
    /// The device as a setup file: `[device.NAME]` for scenarios, and a stack of it alone, so that
    /// it can be used as it is.
    pub fn toml(&self, name: &str) -> String {
        let kind = self.params.kind();
        let mut s = String::new();
        let mut remark = |text: &str| {
            let text = wrapped(&line(text.as_bytes()), 0);
            for line in text.lines() {
                let _ = writeln!(s, "# {line}");
            }
        };
        let how = if self.writes { "read and written" } else { "read only" };
        remark(&format!(
            "{} of {}, made by `steadfast lab calibrate`, which has {how} {} bytes of it.",
            kind.title, self.device, self.bytes
        ));
        remark(&self.verdict());
        if let Some(kinds) = self.other_kinds() {
            remark(&kinds);
        }
        if let Some(warning) = self.warning() {
            remark(&warning);
        }
        remark("Each value says where it is from. [device] can be copied into a scenario.");
        // Writing to a String cannot fail, so the results are dropped here and below.
        let _ = write!(s, "\n[device.{name}]\nkind = \"{}\"\n", kind.name);
        let value_of = |params: &ModelParams| serde_json::to_value(params).unwrap_or(Value::Null);
        let (values, defaults) = (value_of(&self.params), value_of(&(kind.default)()));
        for parameter in kind.parameters {
            let (name, value) = (parameter.name, &values[parameter.name]);
            let from = match self.from.get(name) {
                Some(from) => from.text(),
                None if name == "description" => String::new(),
                None if *value == defaults[name] => {
                    format!("default, not measured ({})", parameter.source)
                }
                None => "not measured: follows from others, as of the default".into(),
            };
            for line in wrapped(&line(from.as_bytes()), 0).lines() {
                let _ = writeln!(s, "# {line}");
            }
            let _ = writeln!(s, "{name} = {value}");
        }
        let _ = write!(s, "\n[stack]\ndisk = \"{name}\"\n");
        s
    }

    /// The demerit in a sentence.
    fn verdict(&self) -> String {
        let Some(Agreement {
            demerit_percent, demerit_ms, device_ms, without_tail_percent, ..
        }) = self.validation.first()
        else {
            return String::new();
        };
        let unsteady = match self.repeatability_percent > UNSTEADY {
            true => " Too noisy for any model: the device did not do the same twice.",
            false => "",
        };
        format!(
            "Demerit {demerit_percent:.1} % of the mean ({} of {} ms), {without_tail_percent:.1} % \
             without the slowest hundredth; the device beside itself, run twice: {:.1} %.{}",
            short(*demerit_ms),
            short(*device_ms),
            self.repeatability_percent,
            unsteady
        )
    }

    /// How near each kind came, where several were tried.
    fn other_kinds(&self) -> Option<String> {
        let all = self.kinds.iter().map(|(name, percent)| format!("{name} {percent:.0} %"));
        let all: Vec<String> = all.collect();
        (all.len() > 1)
            .then(|| format!("Mean distance of the fitted figures, by kind: {}.", all.join(", ")))
    }

    /// For what the model is not to be trusted, the worst first.
    fn warning(&self) -> Option<String> {
        let kinds = |a: &&&Agreement| a.requests != "all";
        let bad = self.not_to_be_trusted();
        let (all, named) = (bad.len(), bad.iter().filter(kinds));
        let named: Vec<String> =
            named.map(|a| format!("{} ({:.0} %)", a.requests, a.demerit_percent)).collect();
        (all > 0).then(|| {
            let what = if named.is_empty() { "mixed requests".into() } else { named.join(", ") };
            format!("Do not trust this model for {what}: a demerit above {DEMERIT_MAX:.0} %.")
        })
    }

    /// The answer for people: how far the model can be trusted, then the figures.
    pub fn text(&self) -> String {
        let kind = self.params.kind();
        let mut s = String::new();
        let mib = self.bytes >> 20;
        let how = if self.writes { "reads and writes" } else { "reads only" };
        let device = line(self.device.as_bytes());
        s += &wrapped(&format!("{device}: {} ({}), {mib} MiB; {how}", kind.name, kind.title), 0);
        s += &wrapped(&self.verdict(), 0);
        if let Some(kinds) = self.other_kinds() {
            s += &wrapped(&kinds, 0);
        }
        if let Some(warning) = self.warning() {
            s += &wrapped(&warning, 0);
        }
        let _ = writeln!(
            s,
            "\n{:34} {:>6} {:>9} {:>9} {:>8} {:>8}",
            "requests of the mix", "n", "device ms", "model ms", "demerit", "99 %"
        );
        for a in &self.validation {
            let _ = writeln!(
                s,
                "{:34} {:>6} {:>9} {:>9} {:>6.1} % {:>6.1} %",
                a.requests,
                a.n,
                short(a.device_ms),
                short(a.model_ms),
                a.demerit_percent,
                a.without_tail_percent
            );
        }
        let _ =
            writeln!(s, "\n{:34} {:>9} {:>6} {:>18} {:>8}", "measured", "", "", "rounds", "model");
        for f in &self.figures.0 {
            let model = self.model_figures.value(&f.name).map_or("-".into(), short);
            let range = format!("{} to {}", short(f.low), short(f.high));
            let value = short(f.value);
            let _ = writeln!(s, "{:34} {value:>9} {:6} {range:>18} {model:>8}", f.name, f.unit);
        }
        s
    }
}
