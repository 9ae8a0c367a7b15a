//! Where in the program its calls were made: stacks in words, for people and reports.
//!
//! Of a stack one place counts: the innermost frame that lies in a file of the program itself. What
//! a program is given (the C library, the standard libraries of Rust and Go, packages that were
//! fetched) only hands the call on.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Frames that are shown beneath the place.
pub const CALLERS_SHOWN: usize = 4;

/// Shared libraries that are nobody's program, whatever is known of their source.
const LIBRARIES: [&str; 6] = ["libc.", "libc-", "ld-", "libpthread", "libstdc++", "libgcc_s"];
/// Parts of paths of what compilers bring, and of what was fetched.
const FETCHED: [&str; 5] =
    ["/rustc/", "/rustlib/src/rust/", "/registry/src/", "/pkg/mod/", "/usr/include/"];
/// The first parts of the names of Go's own packages, as far as they write files.
const GO_PACKAGES: [&str; 16] = [
    "archive", "bufio", "compress", "database", "encoding", "fmt", "internal", "io", "log", "net",
    "os", "reflect", "runtime", "sync", "syscall", "testing",
];

/// Learns of the calls that reach a file system while the threads that made them wait.
pub trait CallObserver: Send + Sync {
    /// A call has begun: its place in the list of calls, and the thread that waits for its answer.
    /// The answer is not sent before this returns.
    fn begins(&self, thread: u32, call: usize);
}

/// One function on a stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CodeFrame {
    /// Its name, where it is known.
    pub function: Option<String>,
    /// Its source file, as the compiler has named it.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The program or shared library that it is in.
    pub module: String,
    /// From the function's beginning, or from the module's where no function is known; bytes.
    pub offset: u64,
}

/// The stacks of a run's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStacks {
    /// Each frame once.
    pub frames: Vec<CodeFrame>,
    /// Each stack once: its frames, the innermost first.
    pub stacks: Vec<Vec<u32>>,
    /// Of each call its stack, from 1; 0 or not there: it is not known.
    pub of_calls: Vec<u32>,
}

impl CallStacks {
    /// The frames of a call, the innermost first; none where they are not known.
    pub fn of(&self, call: usize) -> Vec<&CodeFrame> {
        let stack = self.of_calls.get(call).and_then(|stack| stack.checked_sub(1));
        let stack = stack.and_then(|stack| self.stacks.get(stack as usize));
        stack.into_iter().flatten().filter_map(|at| self.frames.get(*at as usize)).collect()
    }

    /// The call's place in the program, and what of the program has called that, from the inside.
    pub fn place(&self, call: usize) -> Option<(&CodeFrame, Vec<&CodeFrame>)> {
        let mut frames = self.of(call);
        let mut callers = frames.split_off(place(&frames)?);
        let place = callers.remove(0);
        callers.retain(|frame| !frame.is_given() && frame.line.is_some() == place.line.is_some());
        Some((place, callers))
    }

    /// Whether all that is named is there.
    pub(super) fn is_whole(&self, calls: usize) -> bool {
        let mut frames = self.stacks.iter().flatten();
        let mut stacks = self.of_calls.iter();
        frames.all(|at| (*at as usize) < self.frames.len())
            && stacks.all(|at| *at as usize <= self.stacks.len())
            && self.of_calls.len() <= calls
    }
}

/// Which of a stack's frames counts.
fn place(frames: &[&CodeFrame]) -> Option<usize> {
    let own = |frame: &&CodeFrame| !frame.is_given();
    let with_line = frames.iter().position(|frame| own(frame) && frame.line.is_some());
    let place = with_line.or_else(|| frames.iter().position(own));
    place.or((!frames.is_empty()).then_some(0))
}

impl CodeFrame {
    /// Whether it is of a library, and not of the program itself.
    pub fn is_given(&self) -> bool {
        let module = self.module.rsplit('/').next().unwrap_or_default();
        let Some(file) = &self.file else { return module.contains(".so") };
        LIBRARIES.iter().any(|name| module.starts_with(name))
            || FETCHED.iter().any(|part| file.contains(part))
            || (file.ends_with(".go") || file.ends_with(".s")) && self.is_of_go()
    }

    /// Whether it is in a package that comes with Go: `os.(*File).Sync`, `internal/poll.ignore`.
    fn is_of_go(&self) -> bool {
        let first = self.function.as_deref().and_then(|name| name.split(['.', '/']).next());
        first.is_some_and(|first| GO_PACKAGES.contains(&first))
    }

    /// The source file, seen from a folder that it may lie in, and the line.
    pub fn source(&self, folder: Option<&Path>) -> Option<(&str, u32)> {
        let (file, line) = (self.file.as_deref()?, self.line?);
        let inside = folder.and_then(|folder| Path::new(file).strip_prefix(folder).ok());
        Some((inside.and_then(Path::to_str).unwrap_or(file), line))
    }

    /// In words, seen from a folder: `src/store.rs:42 (app::save)`, or `save+0x12 in /bin/app`.
    pub fn seen_from(&self, folder: Option<&Path>) -> String {
        match (self.source(folder), &self.function) {
            (Some((file, line)), Some(function)) => format!("{file}:{line} ({function})"),
            (Some((file, line)), None) => format!("{file}:{line}"),
            (None, Some(name)) => format!("{name}+{:#x} in {}", self.offset, self.module),
            (None, None) => format!("{:#x} in {}", self.offset, self.module),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, module: &str) -> CodeFrame {
        let file = (!file.is_empty()).then(|| file.to_owned());
        CodeFrame {
            line: file.as_ref().map(|_| 42),
            function: Some(function.into()),
            file,
            module: module.into(),
            offset: 0x12,
        }
    }

    /// The function of the place.
    fn chosen(frames: &[CodeFrame]) -> String {
        let at = place(&frames.iter().collect::<Vec<_>>()).unwrap();
        frames[at].function.clone().unwrap()
    }

    #[test]
    fn what_the_program_was_given_is_not_its_place() {
        let libc = frame("fsync", "", "/lib/x86_64-linux-gnu/libc.so.6");
        let own = frame("save", "/home/a/src/save.c", "/home/a/app");
        let main = frame("main", "/home/a/src/main.c", "/home/a/app");
        assert_eq!(chosen(&[libc.clone(), own.clone(), main]), "save");
        let std = "/rustc/abc/library/std/src/fs.rs";
        let fetched = "/root/.cargo/registry/src/index.crates.io-1/tempfile-3/src/file.rs";
        let rust = [
            libc.clone(),
            frame("std::fs::rename", std, "/home/a/app"),
            frame("tempfile::persist", fetched, "/home/a/app"),
            frame("app::Store::save", "src/store.rs", "/home/a/app"),
            frame("std::rt::lang_start", std, "/home/a/app"),
        ];
        assert_eq!(chosen(&rust), "app::Store::save");
        let go = |function, file| frame(function, file, "/tmp/app");
        let go = [
            go("internal/runtime/syscall.Syscall6", "/usr/local/go/src/a/asm_linux_amd64.s"),
            go("os.(*File).Sync", "/usr/local/go/src/os/file_posix.go"),
            go("main.save", "/home/a/go/src/app/main.go"),
            go("runtime.main", "/usr/local/go/src/runtime/proc.go"),
        ];
        assert_eq!(chosen(&go), "main.save");
    }

    #[test]
    fn without_lines_there_is_a_place_too() {
        let libc = frame("fsync", "", "/lib/libc.so.6");
        let app = frame("save", "", "/home/a/app");
        assert_eq!(chosen(&[libc.clone(), app.clone()]), "save");
        // A library of the program's own that has lines is nearer than what has none.
        let store = frame("put", "/home/a/store.c", "/home/a/libstore.so");
        assert_eq!(chosen(&[libc.clone(), app.clone(), store]), "put");
        assert_eq!(chosen(std::slice::from_ref(&libc)), "fsync");
        assert_eq!(place(&[]), None);
        assert_eq!(app.seen_from(None), "save+0x12 in /home/a/app");
        let nameless = CodeFrame { function: None, ..app };
        assert_eq!(nameless.seen_from(None), "0x12 in /home/a/app");
    }

    #[test]
    fn a_file_is_seen_from_its_folder() {
        let frame = frame("save", "/home/a/src/save.c", "/home/a/app");
        let from = |folder| frame.seen_from(Some(Path::new(folder)));
        assert_eq!(from("/home/a"), "src/save.c:42 (save)");
        assert_eq!(from("/home/b"), "/home/a/src/save.c:42 (save)");
    }

    #[test]
    fn stacks_of_calls_are_found() {
        let frames = vec![frame("fsync", "", "/lib/libc.so.6"), frame("save", "s.c", "/app")];
        let mut stacks =
            CallStacks { frames, stacks: vec![vec![0, 1]], of_calls: vec![0, 1, 0, 1] };
        assert!(stacks.is_whole(4) && !stacks.is_whole(3));
        assert!(stacks.of(0).is_empty() && stacks.of(7).is_empty());
        let (place, callers) = stacks.place(3).unwrap();
        assert_eq!((place.function.as_deref(), callers), (Some("save"), vec![]));
        stacks.stacks[0][1] = 2;
        assert!(!stacks.is_whole(4));
    }
}
