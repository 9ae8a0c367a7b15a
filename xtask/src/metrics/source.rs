//! The sources of a crate, parsed: its modules with what each declares, imports and names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::reader;

/// Gives the contents of a file, if it is there.
pub type Text<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// A file of a crate.
#[derive(Debug)]
pub struct SourceFile {
    /// From the folder of the workspace.
    pub path: PathBuf,
    /// Its lines but those of tests; comments and empty ones are counted.
    pub lines: usize,
}

/// A name that a `use` gives.
#[derive(Debug)]
pub struct Import {
    pub name: String,
    pub path: Vec<String>,
    /// It is given to others too, with `pub` of some kind.
    pub is_public: bool,
}

/// A type that is declared: a structure, enumeration, union, trait or alias.
#[derive(Debug)]
pub struct TypeName {
    pub name: String,
    pub file: usize,
    pub line: usize,
}

/// A module, in a file of its own or within another.
#[derive(Debug, Default)]
pub struct CrateModule {
    /// Its path in the crate, empty for the root.
    pub path: Vec<String>,
    pub file: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Its items by name, and whether one of that name is a type.
    pub items: BTreeMap<String, bool>,
    pub imports: Vec<Import>,
    /// The paths of `use PATH::*`.
    pub globs: Vec<Vec<String>>,
    /// All paths in its code, those of one word too.
    pub paths: BTreeSet<Vec<String>>,
    /// The type of each inherent `impl` block, and how many functions that has.
    pub functions: Vec<(Vec<String>, usize)>,
}

/// A crate.
#[derive(Debug, Default)]
pub struct Crate {
    /// Without the prefix that all have.
    pub name: String,
    pub is_published: bool,
    pub files: Vec<SourceFile>,
    pub modules: Vec<CrateModule>,
    pub types: Vec<TypeName>,
}

impl Crate {
    pub fn new(name: &str, is_published: bool) -> Crate {
        Crate { name: name.to_owned(), is_published, ..Crate::default() }
    }

    /// Adds the modules of a library or a program, from its root down.
    pub fn read(&mut self, root: &Path, text: Text) -> anyhow::Result<()> {
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        self.read_file(root.to_owned(), folder, None, "", text)?;
        Ok(())
    }

    /// Adds the module of a file, and those below it, whose files are in `folder`.
    pub fn read_file(
        &mut self,
        path: PathBuf,
        folder: PathBuf,
        parent: Option<usize>,
        name: &str,
        text: Text,
    ) -> anyhow::Result<usize> {
        let source = text(&path).with_context(|| format!("reading {}", path.display()))?;
        let parsed = syn::parse_file(&source);
        let parsed = parsed.with_context(|| format!("parsing {}", path.display()))?;
        let file = self.files.len();
        self.files.push(SourceFile { path, lines: source.lines().count() });
        let module = self.add_module(file, parent, name);
        reader::read(self, module, folder, &parsed, text)?;
        Ok(module)
    }

    /// A module without contents.
    pub fn add_module(&mut self, file: usize, parent: Option<usize>, name: &str) -> usize {
        let (number, mut path) = (self.modules.len(), Vec::new());
        if let Some(parent) = parent {
            let above = &mut self.modules[parent];
            above.children.insert(name.to_owned(), number);
            path.clone_from(&above.path);
            path.push(name.to_owned());
        }
        self.modules.push(CrateModule { path, file, parent, ..CrateModule::default() });
        number
    }

    /// A file's path below the crate's `src`.
    pub fn short(&self, file: usize) -> String {
        let path = self.files[file].path.display().to_string();
        path.split_once("/src/").map_or(path.clone(), |(_, below)| below.to_owned())
    }

    /// A crate of these files, the root first.
    #[cfg(test)]
    pub fn of_texts(name: &str, files: &[(&str, &str)]) -> Crate {
        let mut one = Crate::new(name, true);
        let folder = Path::new(name).join("src");
        let of = |path: &Path| {
            let file = files.iter().find(|(name, _)| path == folder.join(name));
            file.map(|(_, text)| (*text).to_owned())
        };
        one.read(&folder.join(files[0].0), &of).unwrap();
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_compile_is_left_out() {
        let root = "//! Two lines\n\nmod a;\n#[cfg(test)]\nmod b;\n\
            pub struct A {\n    #[cfg(test)]\n    of_tests: u8,\n}\n\
            impl A {\n    /// More.\n    #[cfg(test)]\n    fn of_tests() {}\n    fn f() {}\n}\n\
            /// Tests.\n#[cfg(all(test, unix))]\nmod tests {\n    struct B;\n}\n";
        let files = [
            ("lib.rs", root),
            ("a.rs", "fn a() {}\n#[cfg(not(test))]\nfn b() {}\n"),
            ("b.rs", "struct C;\n"),
        ];
        let one = Crate::of_texts("one", &files);
        let lines: Vec<(String, usize)> =
            (0..one.files.len()).map(|file| (one.short(file), one.files[file].lines)).collect();
        assert_eq!(lines, [("lib.rs".to_owned(), 8), ("a.rs".to_owned(), 3)]);
        let types: Vec<&str> = one.types.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(types, ["A"]);
        assert_eq!(one.modules[0].functions, [(vec!["A".to_owned()], 1)]);
    }

    #[test]
    fn a_module_without_a_file_is_an_error() {
        let text = |path: &Path| (path == Path::new("lib.rs")).then(|| "mod a;".to_owned());
        let fault = Crate::new("one", true).read(Path::new("lib.rs"), &text).unwrap_err();
        assert_eq!(fault.to_string(), "reading a.rs");
    }
}
