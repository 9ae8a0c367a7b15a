//! What a test under power cuts says when it does not test anything: no state is wrong there, and
//! yet it must not pass.

use std::sync::{Arc, Mutex};

use steadfast::FileSystem;
use steadfast::crash::{PowerCut, ProgramFs, Tasks};

/// The message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}

/// What a thread of the machine's says when it makes this call.
fn said_on_a_thread(call: fn(&FileSystem)) -> String {
    let said = Arc::new(Mutex::new(String::new()));
    let slot = Arc::clone(&said);
    let program = move |fs: &ProgramFs| {
        fs.write("/file", "text")?;
        let other = (**fs).clone();
        let thread = std::thread::spawn(move || call(&other));
        if let Err(panic) = thread.join() {
            *slot.lock().unwrap() = message(&*panic);
        }
        steadfast::Result::Ok(())
    };
    PowerCut::new().cuts(5).run(program).check().unwrap();
    let said = said.lock().unwrap();
    said.clone()
}

/// The simulation stands still while its only thread waits for this one: without a panic both wait
/// for ever.
#[test]
fn a_thread_of_the_machine_is_refused_in_words() {
    let calls: [fn(&FileSystem); 4] = [
        |fs| fs.write("/other", "x").unwrap(),
        |fs| assert!(fs.read("/file").is_ok()),
        |fs| fs.sync().unwrap(),
        |fs| assert!(fs.vfs().statfs().is_ok()),
    ];
    for call in calls {
        let said = said_on_a_thread(call);
        assert!(said.contains("steadfast::runtime::spawn"), "{said:?}");
        assert!(said.contains("run_at_folder"), "{said:?}");
    }
}

#[test]
fn no_cut_at_all_is_one() {
    let program = |fs: &ProgramFs| fs.write("/file", "text");
    let report = PowerCut::new().cuts(0).run(program).check().unwrap();
    assert!(report.cuts == 1 && report.states >= 1, "{report:?}");
    let failure = PowerCut::new().cuts(0).run(program).judge(|_| Err("all is wrong")).unwrap_err();
    assert!(failure.is_finding(), "{failure}");
    let tasks = || Tasks::new().task("a", |fs| fs.write("/a", "1"));
    let report = PowerCut::new().cuts(5).schedules(0).run_tasks(tasks).check().unwrap();
    assert_eq!(report.schedules, 1);
    let failure = PowerCut::new().run_tasks(Tasks::new).check().unwrap_err();
    assert!(failure.to_string().contains("no task"), "{failure}");
}

#[test]
fn a_program_that_changes_nothing_does_not_pass() {
    let programs: [fn(&ProgramFs) -> steadfast::Result<()>; 3] =
        [|_| Ok(()), |fs| fs.sync(), |fs| fs.read("/old").map(drop)];
    for program in programs {
        let test = || PowerCut::new().cuts(5).prepare(|fs| fs.write("/old", "text")).run(program);
        for failure in
            [test().check().unwrap_err(), test().judge(|_| Ok::<(), String>(())).unwrap_err()]
        {
            assert!(!failure.is_finding(), "{failure}");
            assert!(failure.to_string().contains("changed nothing"), "{failure}");
        }
    }
}

#[test]
fn a_preparation_that_fails_is_called_so() {
    let test = PowerCut::new().prepare(|fs| fs.remove_file("/none"));
    let failure = test.run(|fs| fs.write("/file", "text")).check().unwrap_err();
    let text = failure.to_string();
    assert!(text.starts_with("the preparation failed: remove_file /none"), "{text}");
}
