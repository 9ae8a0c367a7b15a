//! The driver of sled. `driver write flush|default KEPT` prints what it has inserted (with `flush`:
//! when a flush has returned), `driver read ...` what is left.

const COUNT: u64 = 25;

fn value(n: u64) -> Vec<u8> {
    format!("{n} ").repeat(1000).into_bytes()
}

fn write(setting: &str, is_slow: bool) -> sled::Result<()> {
    let db = sled::open("db")?;
    for n in 1..=COUNT {
        db.insert(n.to_be_bytes(), value(n))?;
        if setting == "flush" {
            db.flush()?;
        }
        println!("{n}");
        if is_slow {
            std::thread::sleep(std::time::Duration::from_millis(250));
        }
    }
    Ok(())
}

fn read() -> sled::Result<()> {
    let db = sled::open("db")?;
    for entry in db.iter() {
        let (key, left) = entry?;
        let n = key.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        println!("{n}{}", if left == value(n) { "" } else { " with another value" });
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
