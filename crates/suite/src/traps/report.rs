//! What was seen, for people, for programs, and as docs/external-journals.md has it.

use serde::Serialize;

/// A command that was run, and how it ended.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// The command, with the images' names for their loop devices.
    pub command: String,
    /// Exit status; none if a signal ended it.
    pub exit: Option<i32>,
    /// The line that says why it ended so, without what differs from run to run.
    pub said: String,
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrapVerdict {
    /// In use again, with everything that was fsynced.
    NothingLost,
    /// In use again; what is lost had to be, and it was said.
    LossSaid,
    /// The tools offer no way on.
    DeadEnd,
    /// What was fsynced is gone or damaged, and nobody said so.
    DataLost,
}

impl TrapVerdict {
    fn text(self) -> &'static str {
        match self {
            TrapVerdict::NothingLost => "nothing lost",
            TrapVerdict::LossSaid => "lost is what only the journal held, and it is said",
            TrapVerdict::DeadEnd => "DEAD END",
            TrapVerdict::DataLost => "DATA LOST",
        }
    }

    /// Whether a user can live with it.
    pub fn is_good(self) -> bool {
        matches!(self, TrapVerdict::NothingLost | TrapVerdict::LossSaid)
    }
}

/// What one side did with a trap.
#[derive(Debug, Clone, Serialize)]
pub struct TrapRun {
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// Whether `e2fsck -fn` finds nothing in the end.
    pub e2fsck_clean: bool,
    /// Files that had been fsynced.
    pub files: usize,
    /// Those of them that can be read back, whole.
    pub files_read_back: usize,
    /// The verdict.
    pub outcome: TrapVerdict,
}

impl TrapRun {
    /// The lines of its cell in a table.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for step in &self.steps {
            let exit = step.exit.map_or("killed".into(), |code| format!("exit {code}"));
            let colon = if step.said.is_empty() { "" } else { ": " };
            lines.push(format!("`{}`: {exit}{colon}{}", step.command, short(&step.said)));
        }
        let clean = if self.e2fsck_clean { "clean" } else { "errors" };
        lines.push(format!(
            "**{}**; {} of {} fsynced files read back; e2fsck -fn: {clean}",
            self.outcome.text(),
            self.files_read_back,
            self.files
        ));
        lines
    }

    /// Its cell in a table of Markdown.
    pub fn cell(&self) -> String {
        self.lines().join("<br>").replace('|', "/")
    }
}

/// The beginning of a long message.
fn short(said: &str) -> String {
    const WIDTH: usize = 150;
    if said.chars().count() <= WIDTH {
        return said.to_owned();
    }
    let cut: String = said.chars().take(WIDTH).collect();
    let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{whole_words} ...")
}

/// A trap and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The trap's name.
    pub trap: &'static str,
    /// What e2fsprogs and the kernel did; none if they were not asked.
    #[serde(rename = "e2fsprogs_and_kernel")]
    pub stock: Option<TrapRun>,
    /// What steadfast did.
    #[serde(rename = "steadfast")]
    pub ours: TrapRun,
}

impl Row {
    /// The row in the table of docs/external-journals.md.
    pub fn markdown(&self) -> String {
        let stock = self.stock.as_ref().map_or_else(String::new, TrapRun::cell);
        format!("| {} | {stock} | {} |", self.trap, self.ours.cell())
    }
}

/// What a document in Markdown says that steadfast does with a trap: the last cell of its row.
pub fn documented<'d>(document: &'d str, trap: &str) -> Option<&'d str> {
    let beginning = format!("| {trap} |");
    let row = document.lines().find(|line| line.starts_with(&beginning))?;
    row.strip_suffix(" |")?.rsplit(" | ").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_again_in_the_document() {
        let step = Step { command: "steadfast x".into(), exit: Some(2), said: "a | b".into() };
        let ours = TrapRun {
            steps: vec![step],
            e2fsck_clean: true,
            files: 20,
            files_read_back: 20,
            outcome: TrapVerdict::NothingLost,
        };
        let row = Row { trap: "a trap", stock: Some(ours.clone()), ours };
        let document = format!("text\n| trap | a | b |\n|---|---|---|\n{}\n", row.markdown());
        assert_eq!(documented(&document, "a trap"), Some(row.ours.cell().as_str()));
        assert!(row.ours.cell().starts_with("`steadfast x`: exit 2: a / b<br>**nothing lost**"));
        assert_eq!(documented(&document, "another"), None);
    }
}
