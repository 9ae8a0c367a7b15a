//! The driver of redb: each record is a transaction, which also writes an older record anew.
//! `driver write immediate|none KEPT` prints what it has committed, `driver read ...` what is left.

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableError};

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
const COUNT: u64 = 25;

fn value(n: u64) -> Vec<u8> {
    format!("{n} ").repeat(1000).into_bytes()
}

fn write(mut db: Database, setting: &str, is_slow: bool) -> Result<(), redb::Error> {
    for n in 1..=COUNT {
        let mut transaction = db.begin_write()?;
        if setting == "none" {
            transaction.set_durability(Durability::None)?;
        }
        {
            let mut table = transaction.open_table(TABLE)?;
            table.insert(n.div_ceil(2), value(n.div_ceil(2)).as_slice())?;
            table.insert(n, value(n).as_slice())?;
        }
        transaction.commit()?;
        println!("{n}");
        if is_slow {
            std::thread::sleep(std::time::Duration::from_millis(250));
        }
    }
    db.compact()?;
    Ok(())
}

fn read(mut db: Database) -> Result<(), redb::Error> {
    db.check_integrity()?;
    let transaction = db.begin_read()?;
    let table = match transaction.open_table(TABLE) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        table => table?,
    };
    for entry in table.iter()? {
        let (key, left) = entry?;
        let n = key.value();
        println!("{n}{}", if left.value() == value(n) { "" } else { " with another value" });
    }
    Ok(())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // What is not synced, the file system writes after seconds: then there is still more.
    let is_slow = words[2] == "some";
    let db = Database::create("db").map_err(redb::Error::from);
    let done = match words[0].as_str() {
        "write" => db.and_then(|db| write(db, &words[1], is_slow)),
        _ => db.and_then(read),
    };
    if let Err(error) = done {
        println!("{error}");
        std::process::exit(1);
    }
}
