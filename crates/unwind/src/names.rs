//! Names of functions, source files and lines for addresses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::os::fd::AsRawFd;

use addr2line::Loader;
use addr2line::fallible_iterator::FallibleIterator;
use steadfast_crash::program::{CallStacks, CodeFrame};

use crate::image::Address;
use crate::module::Module;
use crate::stacks::AddressStacks;

/// Frames of a stack with those of functions that were inlined, at the most.
const FRAMES_MAX: usize = 128;

/// Each frame once.
#[derive(Default)]
struct FrameNames {
    loaders: HashMap<u32, Option<Loader>>,
    numbers: HashMap<CodeFrame, u32>,
    /// Of each address its frames, the innermost first.
    of: HashMap<Address, Vec<u32>>,
}

/// The stacks in words.
pub fn named(stacks: &AddressStacks) -> CallStacks {
    let mut names = FrameNames::default();
    let modules = &stacks.images.modules;
    let in_words = |stack: &&[Address]| {
        let mut frames: Vec<u32> =
            stack.iter().flat_map(|address| names.of(*address, modules)).collect();
        frames.truncate(FRAMES_MAX);
        frames
    };
    let in_words = stacks.all().iter().map(in_words).collect();
    let mut frames: Vec<_> = names.numbers.into_iter().collect();
    frames.sort_unstable_by_key(|(_, number)| *number);
    let frames = frames.into_iter().map(|(frame, _)| frame).collect();
    CallStacks { frames, stacks: in_words, of_calls: stacks.of_calls.clone() }
}

impl FrameNames {
    fn of(&mut self, address: Address, modules: &[Module]) -> Vec<u32> {
        if let Some(known) = self.of.get(&address) {
            return known.clone();
        }
        let module = &modules[address.module as usize];
        let loader = self.loaders.entry(address.module).or_insert_with(|| {
            let file = module.file.as_ref()?;
            // It may have lost its name.
            Loader::new(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
        });
        let frames = frames(address.at, &module.path, loader.as_ref());
        let numbers: Vec<u32> = frames
            .into_iter()
            .map(|frame| {
                let next = self.numbers.len() as u32;
                *self.numbers.entry(frame).or_insert(next)
            })
            .collect();
        self.of.insert(address, numbers.clone());
        numbers
    }
}

/// The functions at an address of a module.
fn frames(at: u64, path: &str, loader: Option<&Loader>) -> Vec<CodeFrame> {
    let module = || path.to_owned();
    let Some(loader) = loader else {
        return vec![CodeFrame { module: module(), offset: at, ..CodeFrame::default() }];
    };
    let symbol = loader.find_symbol_info(at);
    let offset = symbol.as_ref().map_or(at, |symbol| at.wrapping_sub(symbol.address()));
    let symbol = symbol
        .map(|symbol| addr2line::demangle_auto(Cow::Borrowed(symbol.name()), None).into_owned());
    let mut found = Vec::new();
    if let Ok(mut all) = loader.find_frames(at) {
        while let Ok(Some(frame)) = FallibleIterator::next(&mut all) {
            let location = frame.location.as_ref();
            found.push(CodeFrame {
                function: frame.function.and_then(|f| Some(f.demangle().ok()?.into_owned())),
                file: location.and_then(|place| place.file).map(str::to_owned),
                line: location.and_then(|place| place.line),
                module: module(),
                offset,
            });
        }
    }
    if found.is_empty() {
        found.push(CodeFrame { module: module(), offset, ..CodeFrame::default() });
    }
    if let Some(last) = found.last_mut().filter(|frame| frame.function.is_none()) {
        last.function = symbol;
    }
    found
}
