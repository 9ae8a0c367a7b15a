//! Mount options as a command line or a control socket gives them: split into words, offered to the
//! tables, and written as a list that means the same.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_ext4::MountOptions;
use steadfast_ext4::options::{self as ext4, check_together, speaks_of_journal};
use steadfast_vfs::options::{WordEffect, apply, in_force, names, split, unknown};

fn is_fuse(word: &str) -> bool {
    let mut options = steadfast_fuse::Options::default();
    apply(steadfast_fuse::OPTIONS, word, &mut options).is_ok_and(|done| done != WordEffect::Unknown)
}

/// The options that a list gives, and its words; `None` if one is refused.
fn read(text: &str) -> Option<(MountOptions, Vec<String>)> {
    let words = split(ext4::OPTIONS, text, is_fuse);
    let mut options = MountOptions::default();
    for word in &words {
        match apply(ext4::OPTIONS, word, &mut options) {
            Ok(WordEffect::Unknown) if !is_fuse(word) => {
                drop(unknown(word, &names(ext4::OPTIONS)).to_string());
                return None;
            }
            Ok(_) => {}
            Err(why) => {
                drop(why.to_string());
                return None;
            }
        }
    }
    Some((options, words))
}

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some((options, words)) = read(text) else { return };
    let _ = check_together(&options, &words);
    let _ = words.iter().any(|word| speaks_of_journal(word));
    let shown = in_force(ext4::OPTIONS, &options);
    let (again, _) = read(&shown.join(",")).expect("what is in force can be given");
    assert_eq!(in_force(ext4::OPTIONS, &again), shown, "and means the same");
}

steadfast_fuzz::target!(run);
