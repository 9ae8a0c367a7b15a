//! What is mapped where in a process, and in which files.

use std::collections::HashMap;
use std::fs::{File, read, read_to_string};

use crate::module::Module;

/// Threads of which it is known what their processes have mapped; of more, it is read again.
const THREADS_MAX: usize = 1024;

/// Code that is mapped.
#[derive(Clone, Copy)]
struct Mapping {
    start: u64,
    end: u64,
    module: u32,
    bias: u64,
}

/// What a thread's process had mapped when it was last looked at.
struct Image {
    /// The kernel's words to this program (getauxval(3)), among them where it has put what: others
    /// after an exec.
    auxv: Vec<u8>,
    mappings: Vec<Mapping>,
}

/// The files that code is in, and the processes that have mapped them.
#[derive(Default)]
pub struct Images {
    of_threads: HashMap<u32, Image>,
    numbers: HashMap<(String, u64, String), u32>,
    /// Each file once.
    pub modules: Vec<Module>,
}

/// An address in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// Which of the files.
    pub module: u32,
    /// As the file counts.
    pub at: u64,
}

impl Images {
    /// Makes sure that what a thread's process has mapped is of the program that it runs now.
    pub fn look(&mut self, thread: u32) {
        let auxv = read(format!("/proc/{thread}/auxv")).unwrap_or_default();
        if self.of_threads.get(&thread).is_none_or(|image| image.auxv != auxv) {
            self.read(thread, auxv);
        }
    }

    fn read(&mut self, thread: u32, auxv: Vec<u8>) {
        if self.of_threads.len() >= THREADS_MAX {
            self.of_threads.clear();
        }
        let maps = read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
        let mappings = maps.lines().filter_map(|line| self.mapping(thread, line)).collect();
        self.of_threads.insert(thread, Image { auxv, mappings });
    }

    /// A line of maps: `7f00-7f10 r-xp 00001000 fe:01 123    /bin/app`.
    fn mapping(&mut self, thread: u32, line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            let (word, more) = rest.trim_start().split_once(' ')?;
            rest = more;
            Some(word)
        };
        let (range, rights, offset, device, inode) = (word()?, word()?, word()?, word()?, word()?);
        let path = rest.trim_start();
        if !rights.contains('x') || !path.starts_with('/') {
            return None;
        }
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (from, to) = range.split_once('-')?;
        let (start, end, offset) = (hex(from)?, hex(to)?, hex(offset)?);
        let key = (device.to_owned(), inode.parse().ok()?, path.to_owned());
        let module = *self.numbers.entry(key).or_insert_with(|| {
            // Root sees the very file, whatever has become of its name.
            let file = File::open(format!("/proc/{thread}/map_files/{range}"));
            let file = file.or_else(|_| File::open(format!("/proc/{thread}/root{path}")));
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            self.modules.push(Module::open(path, file.ok()));
            self.modules.len() as u32 - 1
        });
        let bias = self.modules[module as usize].bias(offset, start)?;
        Some(Mapping { start, end, module, bias })
    }

    /// Which byte of which file an address of a thread's process is.
    pub fn find(&mut self, thread: u32, address: u64) -> Option<Address> {
        self.known(thread, address).or_else(|| {
            // A library that it has loaded since.
            let auxv = self.of_threads.remove(&thread)?.auxv;
            self.read(thread, auxv);
            self.known(thread, address)
        })
    }

    fn known(&self, thread: u32, address: u64) -> Option<Address> {
        let mappings = &self.of_threads.get(&thread)?.mappings;
        let mapping = mappings.iter().find(|m| (m.start..m.end).contains(&address))?;
        Some(Address { module: mapping.module, at: address.wrapping_sub(mapping.bias) })
    }
}
