//! Tasks side by side under power cuts: a mistake in the order of two tasks' steps is found, with
//! the schedule that shows it; without the mistake nothing is.

use std::sync::Arc;

use steadfast::crash::{Failure, NextBoot, PowerCut, ScheduledReport, Tasks};
use steadfast::runtime::Mutex;
use steadfast::{DataMode, Result};

/// Two writers announce a file each, and a third task syncs and acknowledges what was announced:
/// before they have written it, which is wrong, or after.
fn tasks(wrong: bool) -> Tasks {
    let announced = Arc::new(Mutex::new(Vec::new()));
    let writer = |tasks: Tasks, name: &'static str| {
        let announced = Arc::clone(&announced);
        tasks.task(name, move |fs| {
            if wrong {
                announced.lock().push(name);
            }
            fs.write(format!("/{name}"), name)?;
            if !wrong {
                announced.lock().push(name);
            }
            Result::Ok(())
        })
    };
    let tasks = writer(writer(Tasks::new(), "one"), "two");
    tasks.task("syncer", move |fs| {
        let done = std::mem::take(&mut *announced.lock());
        fs.sync()?;
        done.iter().for_each(|name| fs.acknowledge(name));
        Result::Ok(())
    })
}

fn judge(left: &NextBoot) -> std::result::Result<(), String> {
    left.acknowledgements().iter().try_for_each(|name| {
        let text = left.read_to_string(format!("/{name}")).map_err(|e| e.to_string())?;
        if &text == name { Ok(()) } else { Err(format!("{name} holds {text:?}")) }
    })
}

fn test(cut: PowerCut, wrong: bool) -> std::result::Result<ScheduledReport, Failure> {
    cut.cuts(24).states(8).run_tasks(move || tasks(wrong)).judge(judge)
}

#[test]
fn what_only_one_order_of_two_tasks_shows_is_found() {
    for data in [DataMode::Ordered, DataMode::Journal] {
        let cut = || PowerCut::new().data(data);
        let report = test(cut().preemptions(2).schedules(60), false).unwrap();
        assert!(report.distinct > 3 && report.distinct <= report.schedules, "{report:?}");
        let failure = test(cut(), true).unwrap_err();
        let story = failure.to_string();
        assert!(failure.is_finding() && story.contains("no such file"), "{story}");
        assert_eq!(test(cut(), true).unwrap_err().to_string(), story, "the same once more");
        let words = story.split(".only_schedule(\"").nth(1).and_then(|rest| rest.split('"').next());
        let words = words.unwrap_or_else(|| panic!("no schedule in {story}"));
        assert_eq!(test(cut().only_schedule(words), true).unwrap_err().to_string(), story);
        test(cut().only_schedule(words), false).unwrap();
    }
}

#[test]
fn a_schedule_that_cannot_be_run_is_no_finding() {
    for (words, why) in [("begins=7", "no task 7 of 3"), ("begin=0", "not a word")] {
        let failure = test(PowerCut::new().only_schedule(words), false).unwrap_err();
        assert!(!failure.is_finding() && failure.to_string().contains(why), "{failure}");
    }
    let failing = || Tasks::new().task("fails", |fs| fs.remove_dir("/none"));
    let failure = PowerCut::new().run_tasks(failing).check().unwrap_err();
    let story = failure.to_string();
    assert!(story.contains("task 'fails': the program failed: remove_dir /none"), "{story}");
    assert!(!failure.is_finding() && story.contains("begins=0"), "{story}");
}
