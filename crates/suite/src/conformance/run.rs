//! Runs the steps of a case, each as its user.

use rustix::io::Errno;
use rustix::thread::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::ops;
use super::script::{Case, Step, User};
use super::transcript::{Transcript, name_of};
use super::world::{Fault, StepResult, World};
use crate::{Result, SuiteError};

/// Runs a case in its world and removes what it has left.
pub(super) fn run(mut world: World, case: &Case) -> Result<Transcript> {
    let mut lines = Vec::with_capacity(case.steps.len());
    for step in &case.steps {
        let outcome = match make(&mut world, step) {
            Ok(value) => value,
            Err(Fault::Errno(errno)) => name_of(errno),
            Err(Fault::Script(what)) => {
                let what = format!("{}: {what}", step.text);
                return Err(SuiteError::Script { case: case.name.clone(), what });
            }
        };
        lines.push(format!("{} -> {outcome}", step.text));
    }
    world.clean_up();
    Ok(Transcript { case: case.name.clone(), lines })
}

fn make(world: &mut World, step: &Step) -> StepResult {
    let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
    let Some(user) = &step.user else { return ops::call(world, &words) };
    // The calls, as opposed to the library's functions, change one thread only.
    let as_user = || {
        become_user(user)?;
        ops::call(world, &words)
    };
    std::thread::scope(|s| match s.spawn(as_user).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn become_user(user: &User) -> std::result::Result<(), Errno> {
    let groups: Vec<Gid> = user.groups.iter().map(|g| Gid::from_raw(*g)).collect();
    set_thread_groups(&groups)?;
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}
