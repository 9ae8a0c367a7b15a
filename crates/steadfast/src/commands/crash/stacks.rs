//! `--stacks`: where in the program its calls are made.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use steadfast_crash::program::describe::counted;
use steadfast_crash::program::{CallObserver, CallStacks, CodeFrame};
use steadfast_unwind::Tracer;

use crate::terminal;

/// Beginnings of the names of programs that run others, which have no functions of this machine.
const INTERPRETERS: [&str; 6] = ["python", "perl", "ruby", "node", "php", "lua"];

/// Who takes the stacks of a run, if somebody wants them.
pub struct RunStacks(Option<Arc<Tracer>>);

impl RunStacks {
    /// Before the program begins.
    pub fn begin(is_asked: bool) -> RunStacks {
        RunStacks(is_asked.then(|| Arc::new(Tracer::new())))
    }

    /// Who is to be told of calls.
    pub fn observer(&self) -> Option<Arc<dyn CallObserver>> {
        self.0.clone().map(|tracer| tracer as Arc<dyn CallObserver>)
    }

    /// After its end, while its files are there: the stacks. What is not known of them is said.
    pub fn end(self) -> CallStacks {
        let Some(tracer) = self.0 else { return CallStacks::default() };
        let (stacks, missed) = tracer.end();
        for (why, calls) in missed {
            let calls = counted(calls, "call");
            terminal::note(&format!("note: no stack of {calls}: {}", why.in_words()));
        }
        let places = (0..stacks.of_calls.len()).filter_map(|call| Some(stacks.place(call)?.0));
        let (of_interpreters, others): (Vec<_>, Vec<_>) =
            places.partition(|place| is_interpreter(&place.module));
        let without = others.into_iter().filter(|p| p.line.is_none() && !p.is_given());
        let without = without.collect();
        for (places, what) in [
            (without, "no lines are known: build it with -g"),
            (of_interpreters, "an interpreter: functions are its own, not those of what it runs"),
        ] {
            let places: Vec<&CodeFrame> = places;
            let modules: BTreeSet<&str> = places.iter().map(|p| p.module.as_str()).collect();
            let Some(first) = modules.first() else { continue };
            let more = modules.len() - 1;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            terminal::note(&format!("note: {first}{more}: {what}"));
        }
        stacks
    }
}

fn is_interpreter(module: &str) -> bool {
    let name = Path::new(module).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_prefix("lib").unwrap_or(name);
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}
