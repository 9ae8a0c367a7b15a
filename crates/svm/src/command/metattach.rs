//! metattach(1M), metadetach(1M), metaoffline(1M), metaonline(1M): a mirror's submirrors.

use super::error::{Misuse, usage};
use crate::getopt::options;
use crate::name;

const ATTACH: &str = "\
usage:  metattach [-f] mirror submirror
        metattach mirror

The second form makes a mirror as large as its submirrors have become.

Options:
-f      also over a file system, or the label of another volume
";
const DETACH: &str = "\
usage:  metadetach [-f] mirror submirror

Options:
-f      also one that needs maintenance
";
const OFFLINE: &str = "\
usage:  metaoffline [-f] mirror submirror

Options:
-f      also one that needs maintenance
";
const ONLINE: &str = "\
usage:  metaonline mirror submirror
";

/// What a mirror is to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attach {
    /// The mirror.
    pub mirror: String,
    /// The new submirror; without it the mirror grows.
    pub submirror: Option<String>,
    /// Also over what is on it.
    pub force: bool,
}

/// A submirror that is in a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmirrorArgs {
    /// The mirror.
    pub mirror: String,
    /// The submirror.
    pub submirror: String,
    /// Also one that is not Okay.
    pub force: bool,
}

pub(super) fn attach(words: &[String]) -> Result<Attach, Misuse> {
    let (force, rest) = operands("hfs:i:", words, ATTACH)?;
    let (mirror, submirror) = match rest {
        [mirror] => (mirror, None),
        [mirror, submirror] => (mirror, Some(name::plain(submirror)?)),
        [] => return Err(usage(ATTACH)),
        [concat, ..] => refuse!(
            concat.as_str(),
            "a concat or stripe does not take further components: make another one, \
                        and attach that to the mirror"
        ),
    };
    Ok(Attach { mirror: name::plain(mirror)?, submirror, force })
}

pub(super) fn detach(words: &[String]) -> Result<SubmirrorArgs, Misuse> {
    submirror("hfs:", words, DETACH)
}

pub(super) fn offline(words: &[String]) -> Result<SubmirrorArgs, Misuse> {
    submirror("hfs:", words, OFFLINE)
}

pub(super) fn online(words: &[String]) -> Result<SubmirrorArgs, Misuse> {
    submirror("hs:", words, ONLINE)
}

fn submirror(letters: &str, words: &[String], text: &str) -> Result<SubmirrorArgs, Misuse> {
    let (force, rest) = operands(letters, words, text)?;
    let [mirror, submirror] = rest else { return Err(usage(text)) };
    let (mirror, submirror) = (name::plain(mirror)?, name::plain(submirror)?);
    Ok(SubmirrorArgs { mirror, submirror, force })
}

/// Whether `-f` was given, and the operands.
fn operands<'a>(
    letters: &str,
    words: &'a [String],
    text: &str,
) -> Result<(bool, &'a [String]), Misuse> {
    let (given, rest) = options(letters, text, words)?;
    let mut force = false;
    for option in given {
        match option.letter {
            'i' => refuse!("-i", "a concat or stripe does not take further components"),
            _ => force = true,
        }
    }
    Ok((force, rest))
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn a_mirror_and_a_submirror() {
        let (mirror, submirror) = ("d10".to_owned(), "d12".to_owned());
        let one = |force| SubmirrorArgs { mirror: "d10".into(), submirror: "d12".into(), force };
        let attach = Attach { mirror, submirror: Some(submirror), force: false };
        assert_eq!(line("metattach d10 d12"), Ok(Command::Attach(attach.clone())));
        let grow = Attach { submirror: None, ..attach };
        assert_eq!(line("metattach /dev/md/dsk/d10"), Ok(Command::Attach(grow)));
        assert_eq!(line("metadetach d10 d12"), Ok(Command::Detach(one(false))));
        assert_eq!(line("metadetach -f d10 d12"), Ok(Command::Detach(one(true))));
        assert_eq!(line("metaoffline -f d10 d12"), Ok(Command::Offline(one(true))));
        assert_eq!(line("metaonline d10 d12"), Ok(Command::Online(one(false))));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["metattach", "metadetach d10", "metaonline d10 d11 d12", "metaonline -f a b"] {
            assert!(is_usage(text), "{text}");
        }
        assert!(refusal("metattach d11 c1 c2 c3").starts_with("d11: a concat or stripe does not"));
        assert!(refusal("metattach -i 32k d11 c1").starts_with("-i: "));
    }
}
