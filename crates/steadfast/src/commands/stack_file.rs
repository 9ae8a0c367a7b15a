//! `--stack`: a setup, or a variant of a scenario.

use anyhow::Result;
use steadfast_lab::scenario::{CutKind, Scenario, Variant};
use steadfast_setup::{Machine, Setup, Topology};

use crate::Usage;

/// The stacks of a file, or of a scenario that comes with the program.
pub struct StackFile {
    /// The scenario's name, or the setup's file.
    pub name: String,
    /// The scenario, if it is one.
    pub scenario: Option<Box<Scenario>>,
    /// Devices and volumes.
    pub topology: Topology,
    /// The machine, where no variant is named.
    pub machine: Machine,
    /// One for each variant; of a setup one.
    pub stacks: Vec<NamedStack>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct NamedStack {
    /// The variant's name; a setup has none.
    pub variant: Option<String>,
    /// What it is.
    pub setup: Setup,
    /// At a cut its machine is reset, and its drives keep their power.
    pub is_reset: bool,
    /// The kernel's file system that it has instead of ours.
    pub kernel: Option<String>,
}

impl StackFile {
    /// By the name of a scenario, or a file.
    pub fn find(name_or_file: &str) -> Result<StackFile, Usage> {
        let text = Scenario::text_of(name_or_file).map_err(|e| Usage(e.to_string()))?;
        StackFile::parse(&text, name_or_file)
    }

    /// From its text.
    pub fn parse(text: &str, origin: &str) -> Result<StackFile, Usage> {
        if Setup::is_described_by(text) {
            let setup = Setup::parse(text, origin).map_err(|e| Usage(e.to_string()))?;
            return Ok(StackFile {
                name: origin.to_owned(),
                scenario: None,
                topology: setup.topology.clone(),
                machine: setup.machine.clone(),
                stacks: vec![NamedStack { variant: None, setup, is_reset: false, kernel: None }],
            });
        }
        let scenario = Scenario::parse(text, origin).map_err(|e| Usage(e.to_string()))?;
        let stack = |variant: &Variant| NamedStack {
            variant: Some(variant.name.clone()),
            setup: scenario.setup_of(variant),
            is_reset: variant.cut == CutKind::Reset,
            kernel: variant.kernel.clone(),
        };
        Ok(StackFile {
            name: scenario.name.clone(),
            topology: scenario.topology.clone(),
            machine: scenario.machine.clone(),
            stacks: scenario.variants.iter().map(stack).collect(),
            scenario: Some(Box::new(scenario)),
        })
    }

    /// The variant of this name, or the only stack; `how` a variant is named.
    pub fn choose(&self, variant: Option<&str>, how: &str) -> Result<NamedStack, Usage> {
        let (file, stacks) = (&self.name, &self.stacks[..]);
        let names: Vec<&str> = stacks.iter().filter_map(|s| s.variant.as_deref()).collect();
        let names = names.join(", ");
        match (variant, stacks) {
            (None, [only]) => Ok(only.clone()),
            (None, _) => usage!("{file}: say which variant with {how}: {names}"),
            (Some(_), _) if names.is_empty() => usage!("{file} is a setup: it has no variants"),
            (Some(_), _) => {
                let named = stacks.iter().find(|stack| stack.variant.as_deref() == variant);
                let none = variant.unwrap_or_default();
                let none = || Usage(format!("{file}: no variant '{none}'; there are: {names}"));
                named.cloned().ok_or_else(none)
            }
        }
    }
}

impl NamedStack {
    /// How it is called, in a file of that name.
    pub fn name_in(&self, file: &str) -> String {
        let variant = self.variant.iter().flat_map(|variant| ["/", variant]);
        std::iter::once(file).chain(variant).collect()
    }

    /// Refuses one whose file system is the kernel's; `instead` is what to do.
    pub fn of_ours(self, instead: &str) -> Result<NamedStack, Usage> {
        let Some(kernel) = &self.kernel else { return Ok(self) };
        let name = self.variant.as_deref().unwrap_or_default();
        usage!("variant '{name}' is the kernel's own {kernel}: {instead}")
    }
}
