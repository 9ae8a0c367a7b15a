//! The syntax of DiskSim's parameter files: blocks of `key = value`, where a value is a number, a
//! word, a list, a block, or a file that holds one (`source FILE`).
//!
//! Bucy, Schindler, Schlosser and Ganger, "The DiskSim Simulation Environment, version 4.0",
//! CMU-PDL-08-101, 2008, section 3.1.

use std::collections::BTreeMap;

/// Blocks within blocks, at most.
const DEPTH: usize = 16;

/// What stands behind a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Word(String),
    List(Vec<Value>),
    Block(Block),
    /// A block in this file.
    Source(String),
}

/// A block: its kind, and what stands in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Block {
    pub kind: String,
    pub values: BTreeMap<String, Value>,
}

impl Block {
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        match self.values.get(key)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, or 0, which is what DiskSim takes for most.
    pub(super) fn or_0(&self, key: &str) -> f64 {
        self.number(key).unwrap_or(0.0)
    }

    pub(super) fn is_on(&self, key: &str) -> bool {
        self.or_0(key) != 0.0
    }

    pub(super) fn word(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Value] {
        match self.values.get(key) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    pub(super) fn numbers(&self, key: &str) -> Vec<f64> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        };
        self.list(key).iter().filter_map(number).collect()
    }
}

/// A parameter file: blocks, and the files that it says stand in its place.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parameters {
    pub blocks: Vec<Block>,
    pub sources: Vec<String>,
}

/// The blocks of a file; an error is what is wrong, with its line.
pub(super) fn parse(text: &str) -> Result<Parameters, String> {
    let mut tokens = Tokens { all: tokens(text), next: 0 };
    let mut found = Parameters::default();
    while let Some(word) = tokens.take() {
        match (word, tokens.peek(1)) {
            ("source", _) => found.sources.push(tokens.word("a file's name")?),
            ("instantiate" | "topology", _) => tokens.skip_statement(),
            (kind, Some("{")) => {
                let kind = kind.to_owned();
                tokens.word("a block's name")?;
                found.blocks.push(tokens.block(kind, 0)?);
            }
            // A block without a name.
            (kind, _) if tokens.peek(0) == Some("{") => {
                let kind = kind.to_owned();
                found.blocks.push(tokens.block(kind, 0)?);
            }
            (word, _) => return Err(tokens.error(&format!("'{word}' begins no block"))),
        }
    }
    Ok(found)
}

fn is_sign(word: &str) -> bool {
    "{}[]=,".contains(word)
}

/// Words and signs, each with its line.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let mut rest = text.split('#').next().unwrap_or("");
        while let Some(at) = rest.find(|c: char| !c.is_whitespace()) {
            rest = &rest[at..];
            let is_sign = |c: char| "{}[]=,".contains(c);
            let end = match rest.starts_with(is_sign) {
                true => 1,
                false => rest.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(rest.len()),
            };
            all.push((line, &rest[..end]));
            rest = &rest[end..];
        }
    }
    all
}

struct Tokens<'t> {
    all: Vec<(usize, &'t str)>,
    next: usize,
}

impl<'t> Tokens<'t> {
    fn peek(&self, ahead: usize) -> Option<&'t str> {
        self.all.get(self.next + ahead).map(|(_, word)| *word)
    }

    fn take(&mut self) -> Option<&'t str> {
        let word = self.peek(0)?;
        self.next += 1;
        Some(word)
    }

    fn error(&self, what: &str) -> String {
        let at = self.next.saturating_sub(1).min(self.all.len().saturating_sub(1));
        let line = self.all.get(at).map_or(0, |(line, _)| *line);
        format!("line {line}: {what}")
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        self.take().map(str::to_owned).ok_or_else(|| self.error(&format!("{what} is missing")))
    }

    /// Up to the end of a list of components, which say how they are joined.
    fn skip_statement(&mut self) {
        let mut depth = 0;
        while let Some(word) = self.take() {
            match word {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => continue,
            }
            // `instantiate [ names ] as KIND`; a topology ends with its list.
            if depth == 0 {
                if self.peek(0) == Some("as") {
                    self.next += 2;
                }
                return;
            }
        }
    }

    /// What stands between `{` and `}`.
    fn block(&mut self, kind: String, depth: usize) -> Result<Block, String> {
        self.take();
        let mut block = Block { kind, ..Block::default() };
        loop {
            let mut key: Vec<&str> = Vec::new();
            loop {
                match self.take() {
                    Some("=") => break,
                    Some("}") if key.is_empty() => return Ok(block),
                    Some(",") if key.is_empty() => {}
                    Some(word) if !is_sign(word) => key.push(word),
                    Some(_) => return Err(self.error("a key and '=' should be here")),
                    None => return Err(self.error("the block is not ended")),
                }
            }
            let value = self.value(depth)?;
            block.values.insert(key.join(" "), value);
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(self.error("blocks and lists lie too deep within each other"));
        }
        match self.take() {
            Some("[") => {
                let mut list = Vec::new();
                loop {
                    match self.peek(0) {
                        Some("]") => {
                            self.next += 1;
                            return Ok(Value::List(list));
                        }
                        Some(",") => self.next += 1,
                        Some(_) => list.push(self.value(depth + 1)?),
                        None => return Err(self.error("the list is not ended")),
                    }
                }
            }
            Some("source") => Ok(Value::Source(self.word("a file's name")?)),
            Some(word) if [self.peek(0), self.peek(1)].contains(&Some("{")) && !is_sign(word) => {
                let kind = word.to_owned();
                // It may have a name.
                if self.peek(0) != Some("{") {
                    self.next += 1;
                }
                Ok(Value::Block(self.block(kind, depth + 1)?))
            }
            Some(word) if !is_sign(word) => {
                // "nan" and "inf" are words.
                let number = word.parse().ok().filter(|n: &f64| n.is_finite());
                Ok(number.map_or_else(|| Value::Word(word.to_owned()), Value::Number))
            }
            _ => Err(self.error("a value should be here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "disksim_disk DISK {\n  Model = source a.model, # its layout\n  \
                        Read hit over. after read = 0.066000,\n  Scheduler = ioqueue {\n    \
                        Scheduling policy = 1\n  },\n  slips = [ 1,\n 2 ],\n  \
                        zones = [ zone { a = 1 }, zone { a = 2 } ],\n  Seek type = hpl\n} # end\n\
                        source other.diskspecs\ninstantiate [ disk0 ] as DISK\n\
                        topology disksim_iodriver driver0 [ disksim_bus bus0 [ ] ]\n\
                        disksim_global Global { Init Seed = 42 }\n";

    #[test]
    fn blocks_lists_and_files_are_read() {
        let found = parse(TEXT).unwrap();
        assert_eq!(found.sources, ["other.diskspecs"]);
        assert_eq!(found.blocks.len(), 2);
        let disk = &found.blocks[0];
        assert_eq!(disk.kind, "disksim_disk");
        assert_eq!(disk.number("Read hit over. after read"), Some(0.066));
        assert_eq!(disk.word("Seek type"), Some("hpl"));
        assert_eq!(disk.numbers("slips"), [1.0, 2.0]);
        assert_eq!(disk.values["Model"], Value::Source("a.model".into()));
        assert_eq!(disk.list("zones").len(), 2);
        assert!(!disk.is_on("not there"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert_eq!(wrong("disk D {\n a = 1,\n"), "line 2: the block is not ended");
        assert_eq!(wrong("disk D {\n a 1 }"), "line 2: a key and '=' should be here");
        assert_eq!(wrong("disk D { a = [1, 2"), "line 1: the list is not ended");
        assert_eq!(wrong("disk D { a = }"), "line 1: a value should be here");
        assert_eq!(wrong("\n\nnothing"), "line 3: 'nothing' begins no block");
        let deep = "d D { a = ".repeat(40);
        assert!(wrong(&deep).contains("too deep"), "{}", wrong(&deep));
        assert!(wrong(&format!("d D {{ a = {}", "[".repeat(99_999))).contains("too deep"));
    }
}
