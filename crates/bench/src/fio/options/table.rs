//! What a row of the list of options says.

use super::JobOptions;

/// Takes a value in.
pub(super) type SetOption = fn(&mut JobOptions, &str) -> Result<(), String>;

/// An option of fio's.
#[derive(Debug)]
pub struct OptionRow {
    /// As fio's manual calls it.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What its value is.
    pub form: &'static str,
    /// What it does; of one that has no effect here, why.
    pub help: &'static str,
    /// It may stand without a value, and is 1 then.
    pub(super) takes_nothing: bool,
    /// `None`: it has no effect here.
    pub(super) set: Option<SetOption>,
}

impl OptionRow {
    /// Whether it changes anything here.
    pub fn has_effect(&self) -> bool {
        self.set.is_some()
    }
}

pub(super) const fn row(
    name: &'static str,
    form: &'static str,
    help: &'static str,
    set: SetOption,
) -> OptionRow {
    OptionRow { name, aliases: &[], form, help, takes_nothing: false, set: Some(set) }
}

pub(super) const fn flag(
    name: &'static str,
    form: &'static str,
    help: &'static str,
    set: SetOption,
) -> OptionRow {
    OptionRow { takes_nothing: true, ..row(name, form, help, set) }
}

pub(super) const fn without_effect(name: &'static str, help: &'static str) -> OptionRow {
    OptionRow { name, aliases: &[], form: "any", help, takes_nothing: true, set: None }
}

pub(super) const fn also(aliases: &'static [&'static str], row: OptionRow) -> OptionRow {
    OptionRow { aliases, ..row }
}
