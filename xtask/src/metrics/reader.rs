//! Walks through the syntax of a file and notes what a [`CrateModule`] is to have.
//!
//! Left out is what only tests compile: items, functions of `impl` blocks, fields and variables
//! under `#[cfg(test)]` or `#[cfg(doctest)]`, and the files of such modules. All other `cfg` are
//! taken as true. What a macro is given is not parsed: its tokens are searched for paths, and for
//! the types that it declares.

use std::path::{Path, PathBuf};

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree};

use super::source::{Crate, CrateModule, Import, Text, TypeName};
use super::{attributes, tokens};

/// Reads the file of a module that is in the crate already.
pub fn read(
    of: &mut Crate,
    module: usize,
    folder: PathBuf,
    parsed: &syn::File,
    text: Text,
) -> anyhow::Result<()> {
    let mut reader = SyntaxReader { of, module, folder, text, blocks: 0, fault: None };
    reader.visit_file(parsed);
    reader.fault.map_or(Ok(()), Err)
}

/// Walks through a file and notes what it finds.
struct SyntaxReader<'a> {
    of: &'a mut Crate,
    /// The module in which it is.
    module: usize,
    /// Where the files of modules below are.
    folder: PathBuf,
    text: Text<'a>,
    /// So many blocks of functions are around: what is declared in one is not the module's.
    blocks: usize,
    fault: Option<anyhow::Error>,
}

impl SyntaxReader<'_> {
    fn here(&mut self) -> &mut CrateModule {
        &mut self.of.modules[self.module]
    }

    /// Whether only tests have it; then its lines do not count.
    fn is_left_out(&mut self, given: &[Attribute], span: Span) -> bool {
        let is_test = given.iter().any(attributes::is_for_tests);
        if is_test {
            let file = self.here().file;
            self.of.files[file].lines -= span.end().line - span.start().line + 1;
        }
        is_test
    }

    fn declare(&mut self, name: &Ident, is_type: bool) {
        // The same type may be declared for each of several `cfg`.
        let is_known = self.blocks == 0 && self.here().items.get(&name.to_string()) == Some(&true);
        if is_type && !is_known {
            let (file, line) = (self.here().file, name.span().start().line);
            self.of.types.push(TypeName { name: name.to_string(), file, line });
        }
        if self.blocks == 0 {
            *self.here().items.entry(name.to_string()).or_default() |= is_type;
        }
    }

    fn read_module(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let (file, below) = (self.here().file, self.folder.join(&name));
        if let Some((_, items)) = &item.content {
            let module = self.of.add_module(file, Some(self.module), &name);
            let above = std::mem::replace(&mut self.module, module);
            let folder_above = std::mem::replace(&mut self.folder, below);
            items.iter().for_each(|item| self.visit_item(item));
            (self.module, self.folder) = (above, folder_above);
            return;
        }
        let candidates = match item.attrs.iter().find_map(attributes::path) {
            Some(given) => {
                let beside = self.of.files[file].path.parent().unwrap_or(Path::new(""));
                vec![beside.join(given)]
            }
            None => vec![below.with_extension("rs"), below.join("mod.rs")],
        };
        let there = candidates.iter().find(|path| (self.text)(path).is_some());
        let path = there.unwrap_or(&candidates[0]).clone();
        let read = self.of.read_file(path, below, Some(self.module), &name, self.text);
        if let Err(fault) = read {
            self.fault.get_or_insert(fault);
        }
    }

    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, is_public: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(&part.tree, path, is_public);
                path.pop();
            }
            UseTree::Name(last) => {
                let path = joined(path, &last.ident);
                let name = path.last().cloned().unwrap_or_default();
                self.here().imports.push(Import { name, path, is_public });
            }
            UseTree::Rename(last) => {
                let (path, name) = (joined(path, &last.ident), last.rename.to_string());
                self.here().imports.push(Import { name, path, is_public });
            }
            UseTree::Glob(_) => self.here().globs.push(path.clone()),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, path, is_public));
            }
        }
    }

    fn note(&mut self, path: Vec<String>) {
        if path.first().is_some_and(|first| first != "Self") {
            self.here().paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for SyntaxReader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if self.is_left_out(attributes::of(item), item.span()) {
            return;
        }
        match item {
            Item::Mod(item) => return self.read_module(item),
            Item::Use(item) => {
                let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                if item.leading_colon.is_none() {
                    self.import(&item.tree, &mut Vec::new(), is_public);
                }
                return;
            }
            Item::Struct(item) => self.declare(&item.ident, true),
            Item::Enum(item) => self.declare(&item.ident, true),
            Item::Union(item) => self.declare(&item.ident, true),
            Item::Trait(item) => self.declare(&item.ident, true),
            Item::Type(item) => self.declare(&item.ident, true),
            Item::Fn(item) => self.declare(&item.sig.ident, false),
            Item::Const(item) => self.declare(&item.ident, false),
            Item::Static(item) => self.declare(&item.ident, false),
            Item::Macro(item) => match &item.ident {
                Some(name) => self.declare(name, false),
                None => {
                    for name in tokens::declared(item.mac.tokens.clone()) {
                        self.declare(&name, true);
                    }
                }
            },
            Item::Impl(item) => {
                let is_function = |item: &&ImplItem| match item {
                    ImplItem::Fn(f) => !f.attrs.iter().any(attributes::is_for_tests),
                    _ => false,
                };
                if let (None, syn::Type::Path(of)) = (&item.trait_, &*item.self_ty) {
                    let count = item.items.iter().filter(is_function).count();
                    self.here().functions.push((words(&of.path), count));
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            _ => &[],
        };
        if !self.is_left_out(attributes, item.span()) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !self.is_left_out(&field.attrs, field.span()) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !self.is_left_out(&field.attrs, field.span()) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !self.is_left_out(&local.attrs, local.span()) {
            visit::visit_local(self, local);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.blocks += 1;
        visit::visit_block(self, block);
        self.blocks -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.note(words(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        // Of one word it is a macro, which no function of that name is.
        if of.path.segments.len() > 1 {
            self.visit_path(&of.path);
        }
        for path in tokens::paths(of.tokens.clone()) {
            self.note(path);
        }
    }
}

/// A path and the last word of an import, which may be `self`.
fn joined(path: &[String], last: &Ident) -> Vec<String> {
    let last = (last != "self").then(|| last.to_string());
    path.iter().cloned().chain(last).collect()
}

fn words(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}
