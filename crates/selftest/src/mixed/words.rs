//! What the lines of all cases have in common: the words of a set-up, and the command that
//! reproduces a case.

use steadfast_crash::Result;
use steadfast_ext4::DataMode;

use super::Setup;

impl Setup {
    /// Takes the word `name` or `name=value`; false if no kind of case has it.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        if let Some(data) = DataMode::of_name(name) {
            self.data = data;
            return Ok(true);
        }
        if name != "bug" {
            return Ok(false);
        }
        self.plant(value).map(|()| true)
    }

    #[cfg(feature = "planted-bugs")]
    fn plant(&mut self, name: &str) -> Result<()> {
        let planted = steadfast_crash::planted::StackBug::named(name);
        self.planted = Some(planted.ok_or_else(|| format!("{name}: no such bug"))?);
        Ok(())
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    fn plant(&mut self, name: &str) -> Result<()> {
        Err(format!("{name}: no such bug without the feature planted-bugs").into())
    }

    /// The bug's word.
    pub(crate) fn bug_word(&self) -> String {
        self.bug().map_or(String::new(), |bug| format!(" bug={bug}"))
    }

    /// The command that reproduces a case, by an example of this crate.
    pub(crate) fn command(&self, example: &str, case: &dyn std::fmt::Display) -> String {
        let feature = if self.bug().is_some() { "--features planted-bugs " } else { "" };
        format!("cargo run --release -p steadfast-selftest {feature}--example {example} -- {case}")
    }

    #[cfg(feature = "planted-bugs")]
    fn bug(&self) -> Option<&'static str> {
        self.planted.map(steadfast_crash::planted::StackBug::name)
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    fn bug(&self) -> Option<&'static str> {
        None
    }
}
