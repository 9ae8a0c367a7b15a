//! The driver of fjall, with a small memtable. `driver write default|syncall KEPT` prints what it
//! has inserted (with `syncall`: when it has been persisted), `driver read ...` what is left.

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

const COUNT: u64 = 25;

fn value(n: u64) -> Vec<u8> {
    format!("{n} ").repeat(1000).into_bytes()
}

fn opened() -> fjall::Result<(Database, Keyspace)> {
    let db = Database::builder("db").open()?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(32 << 10);
    let records = db.keyspace("records", options)?;
    Ok((db, records))
}

fn write(setting: &str, is_slow: bool) -> fjall::Result<()> {
    let (db, records) = opened()?;
    for n in 1..=COUNT {
        records.insert(n.to_be_bytes(), value(n))?;
        if setting == "syncall" {
            db.persist(PersistMode::SyncAll)?;
        }
        println!("{n}");
        if is_slow {
            std::thread::sleep(std::time::Duration::from_millis(250));
        }
    }
    Ok(())
}

fn read() -> fjall::Result<()> {
    let (_db, records) = opened()?;
    for entry in records.iter() {
        let (key, left) = entry.into_inner()?;
        let n = key.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        println!("{n}{}", if *left == value(n) { "" } else { " with another value" });
    }
    Ok(())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // What is not synced, the file system writes after seconds: then there is still more.
    let is_slow = words[2] == "some";
    let done = if words[0] == "write" { write(&words[1], is_slow) } else { read() };
    if let Err(error) = done {
        println!("{error}");
        std::process::exit(1);
    }
}
