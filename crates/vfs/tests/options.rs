//! Tables of mount options: what is set is what is said to be in force, and what cannot be meant is
//! refused with the word that was.

use steadfast_vfs::options::{
    Form, MountOption, ValueError, WordEffect, apply, choose, in_force, names, split, texts,
    unknown,
};

/// Everything that an option can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Set {
    on: bool,
    way: usize,
    mode: usize,
    seconds: u64,
    bytes: Option<u64>,
    labels: Vec<String>,
    mask: Option<String>,
}

const WAYS: [&str; 3] = ["relaxed", "strict=none", "strict"];
const MODES: [&str; 2] = ["ordered", "journal"];

fn position(words: &[&str], word: &str) -> usize {
    words.iter().position(|w| *w == word).unwrap()
}

/// Only one table can have options of `T`, so it is made anew for each test.
fn table() -> Vec<MountOption<Set>> {
    let option = |form| MountOption { of: "test", form, remount: true, help: "what it does" };
    vec![
        option(Form::Switch {
            on: &["delay", "delay=1"],
            off: &["nodelay", "delay=0"],
            set: |s, on| s.on = on,
            get: |s| s.on,
        }),
        option(Form::OneOf {
            words: &WAYS,
            set: |s, word| s.way = position(&WAYS, word),
            get: |s| WAYS[s.way],
        }),
        option(Form::Choice {
            key: "data",
            words: &MODES,
            set: |s, word| s.mode = position(&MODES, word),
            get: |s| MODES[s.mode],
        }),
        option(Form::Number {
            key: "commit",
            shown: "SECONDS",
            range: 0..=300,
            set: |s, n| s.seconds = n,
            get: |s| s.seconds,
        }),
        option(Form::Size {
            key: "cache",
            least: 1 << 20,
            set: |s, n| s.bytes = Some(n),
            get: |s| s.bytes,
        }),
        option(Form::Text {
            keys: &["label", "name"],
            shown: "LABEL",
            set: |s, text| {
                let path = text.to_owned();
                let refused = || ValueError::Path { path, source: std::io::Error::other("bad") };
                (!text.contains('!')).then(|| s.labels.push(text.into())).ok_or_else(refused)
            },
            get: |s| s.labels.clone(),
        }),
        option(Form::List {
            key: "mask",
            shown: "PARTS",
            is_part: |word| ["read", "write", "sync", "commit"].contains(&word),
            set: |s, text| {
                s.mask = Some(text.into());
                Ok(())
            },
            get: |s| s.mask.clone(),
        }),
        option(Form::WithoutEffect { words: &["defaults"], keys: &["user"], prefixes: &["x-"] }),
        option(Form::NotOffered { words: &["barrier"], keys: &["nobh"] }),
    ]
}

fn parsed(text: &str) -> Result<Set, String> {
    let (table, mut set) = (table(), Set::default());
    for word in split(&table, text, |word| word == "commit=7") {
        match apply(&table, &word, &mut set) {
            Ok(WordEffect::Set | WordEffect::WithoutEffect) => {}
            Ok(WordEffect::Unknown) => return Err(unknown(&word, &names(&table)).to_string()),
            Err(e) => return Err(e.to_string()),
        }
    }
    Ok(set)
}

#[test]
fn what_is_in_force_sets_the_same_again() {
    let all = |n: u64| Set {
        on: n & 1 == 1,
        way: usize::try_from(n).unwrap() % WAYS.len(),
        mode: usize::try_from(n / 2).unwrap() % MODES.len(),
        seconds: [0, 1, 299, 300][usize::try_from(n).unwrap() % 4],
        bytes: [None, Some(1 << 20), Some((1 << 20) + 1), Some(3 << 40)]
            [usize::try_from(n / 3).unwrap() % 4],
        labels: (0..n % 3).map(|n| format!("a label={n}")).collect(),
        mask: [None, Some("read"), Some("read,write,sync")][usize::try_from(n / 5).unwrap() % 3]
            .map(str::to_owned),
    };
    for n in 0..200 {
        let wanted = all(n);
        let text = in_force(&table(), &wanted).join(",");
        assert_eq!(parsed(&text).as_ref(), Ok(&wanted), "{text}");
    }
}

#[test]
fn the_last_word_counts_and_spaces_do_not() {
    let set = parsed("nodelay, delay ,,commit=5,commit=6,strict,strict=none,delay=0,").unwrap();
    assert_eq!(set, Set { way: 1, seconds: 6, ..Set::default() });
    assert_eq!(parsed(""), Ok(Set::default()));
    assert_eq!(parsed("defaults,x-anything=at,all,user=me").unwrap_err(), {
        // A comma ends what begins with x-, too.
        unknown("all", &names(&table())).to_string()
    });
    // Several values of one text; an equals sign belongs to it.
    assert_eq!(parsed("label=a,name=b=c").unwrap().labels, ["a", "b=c"]);
}

#[test]
fn the_parts_of_a_list_stay_together() {
    let mask = |text: &str| parsed(text).unwrap().mask.unwrap();
    assert_eq!(mask("mask=read,write"), "read,write");
    // Also behind other words, unless they are options by themselves.
    assert_eq!(mask("mask=read,delay,write"), "read,write");
    assert_eq!(parsed("write").unwrap_err(), unknown("write", &names(&table())).to_string());
    let set = parsed("mask=read,delay,commit=7").unwrap();
    assert_eq!((set.mask.as_deref(), set.seconds), (Some("read"), 7));
}

#[test]
fn values_at_their_ends_and_beyond() {
    for (good, bad) in [
        ("commit=0", "commit=-1"),
        ("commit=300", "commit=301"),
        ("commit=007", "commit=7.0"),
        ("commit=1", "commit="),
        ("commit=1", "commit=99999999999999999999"),
        ("cache=1m", "cache=1023k"),
        ("cache=1048576", "cache=0"),
        ("cache=16t", "cache=16q"),
        ("cache=1m", "cache=99999999999999999999t"),
        ("data=journal", "data=Journal"),
        ("label=x", "label="),
        ("label=x", "label=x!"),
        ("delay", "delay=2"),
        ("strict=none", "strict=some"),
    ] {
        assert!(parsed(good).is_ok(), "{good}: {:?}", parsed(good));
        let error = parsed(bad).expect_err(bad);
        assert!(error.starts_with(&format!("mount option {bad}: ")), "{error}");
    }
}

#[test]
fn what_was_meant_is_named() {
    for (given, said) in [
        ("commit", "a value is needed: commit=..."),
        ("comit=5", "did you mean commit=?"),
        ("nodelai", "did you mean nodelay?"),
        ("strict=", "`strict` takes no value"),
        ("data=ordred", "ordred is unknown: did you mean ordered? (choose ordered or journal)"),
        ("data=zzz", "zzz is unknown: choose ordered or journal"),
        ("data=", "data=: a value is needed: choose ordered or journal"),
        ("zzz", "is unknown: choose "),
        ("barrier", "is not offered: what it does"),
        ("nobh=1", "is not offered: what it does"),
    ] {
        let error = parsed(given).expect_err(given);
        assert!(error.contains(said), "{given}: {error}");
    }
    // What has no effect is not offered as what was meant, and is in no table for people.
    assert!(!names(&table()).iter().any(|name| name.contains("defaults")));
    let texts = texts(&table());
    assert_eq!(texts.len(), 7);
    assert_eq!((texts[3].words.as_str(), texts[3].default.as_str()), ("commit=SECONDS", "0"));
    assert_eq!((texts[0].words.as_str(), texts[0].default.as_str()), ("delay, nodelay", "nodelay"));
}

#[test]
fn a_choice_is_a_list_with_or() {
    assert_eq!(choose(["a"]), "choose a");
    assert_eq!(choose(["a", "b"]), "choose a or b");
    assert_eq!(choose(["a", "b", "c"]), "choose a, b or c");
    assert_eq!(choose::<&str>([]), "there is nothing to choose");
}
