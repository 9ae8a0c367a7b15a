//! SQLite in its default mode loses nothing but what it was not asked to keep.

use super::lab::{Lab, soak};

const PROGRAM: &str = "\
sqlite3 db 'create table t(n)' && echo made
for n in 1 2 3 4; do sqlite3 db \"insert into t values ($n)\" && echo $n; done
";

#[test]
fn the_default_mode_stays_whole_in_every_data_mode() {
    let Some(lab) = Lab::new() else { return };
    let script = lab.script("program", PROGRAM);
    let cuts = (60 * soak()).to_string();
    for data in ["ordered", "writeback", "journal", "transact"] {
        let data = format!("data={data}");
        let judge = ["--judge", "sqlite3 db 'pragma integrity_check'", "--judge-prints", "ok"];
        let plan = ["-o", &data, "--linger", "0.2", "--cuts", &cuts];
        let (report, found) = lab.run(&[&plan[..], &judge, &["--", "sh", &script]].concat());
        assert!(!found, "{data}: {report:#}");
        assert_eq!(report["recorded"]["lines"], 5, "{report:#}");
        assert!(report["trees"].as_u64().unwrap() > 5, "{report:#}");
    }
}
