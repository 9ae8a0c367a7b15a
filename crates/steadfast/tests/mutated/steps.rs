//! What is done to each image.

use super::Tally;
use super::outside::Bench;
use super::run::{other, steadfast};

/// Work through a mount: read all, then change what can be changed. Failures are expected. A
/// directory can call a FIFO a file, and who opens that waits: each is looked at itself first.
const WORK: &str = "\
find m -xdev | head -n 2000 | tr '\\n' '\\0' | xargs -0 -r stat > /dev/null
find m -xdev -type f | head -n 300 | tr '\\n' '\\0' |
    xargs -0 -r sh -c 'for f; do if [ -f \"$f\" ]; then head -c 30000 \"$f\"; fi; done' - \
    > /dev/null
mkdir m/new && cp source m/new/a && cp source m/new/b && sync -d m/new/b
ln m/new/a m/new/c; mv m/new/b m/many/moved; truncate -s 100 m/pieces
dd if=source of=m/d1/c bs=1k seek=3 conv=notrunc; dd if=source of=m/hole bs=4k seek=9 conv=notrunc
rm -rf m/d1/d2; mv m/empty m/d1/empty; rm -f m/many/*1*
true";

/// All commands on one image; what went wrong.
pub fn all(bench: &Bench, tally: &mut Tally) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut run = |line: &str| {
        let (status, finding) = steadfast(bench, line);
        wrong.extend(finding);
        status
    };
    let clean = run("check image") == Some(0);
    run("info image");
    run("ls -R image");
    run("get -r image / around/copy");
    for copy in ["replayed", "changed", "mounted"] {
        bench.copy(copy);
    }
    run("replay replayed");
    run("rm -r changed /d1");
    run("put changed source /put");
    let mounted = run("mount mounted m --log log") == Some(0);
    if mounted {
        if other(bench, WORK).status.code().is_none() {
            wrong.push("the work on the mount did not end".into());
        }
        let (_, finding) = steadfast(bench, "umount m");
        wrong.extend(finding);
        let log = std::fs::read_to_string(bench.path("log")).unwrap_or_default();
        let panic = log.lines().find(|l| l.contains("panicked"));
        wrong.extend(panic.map(|l| format!("mount: {l}")));
    }
    wrong.extend(bench.changed_outside());

    tally.mounted += u64::from(mounted);
    tally.not_clean += u64::from(!clean);
    if clean {
        judge(bench, mounted, tally, &mut wrong);
    }
    wrong
}

/// What was clean to all is clean after it was changed.
fn judge(bench: &Bench, mounted: bool, tally: &mut Tally, wrong: &mut Vec<String>) {
    if let Some(said) = e2fsck(bench, "image") {
        tally.unseen += 1;
        super::say(&format!("check says clean, e2fsck: {said}"));
        return;
    }
    tally.judged += 1;
    for copy in ["replayed", "changed", "mounted"] {
        if copy == "mounted" && !mounted {
            continue;
        }
        if let Some(said) = e2fsck(bench, copy) {
            wrong.push(format!("{copy}: e2fsck: {said}"));
        }
        let (status, finding) = steadfast(bench, &format!("check {copy}"));
        wrong.extend(finding);
        if status != Some(0) {
            let said = std::fs::read_to_string(bench.path("stdout")).unwrap_or_default();
            wrong.push(format!("{copy}: check says {status:?}: {said}"));
        }
    }
}

/// What e2fsck finds.
fn e2fsck(bench: &Bench, image: &str) -> Option<String> {
    let out = other(bench, &format!("e2fsck -fn {image} 2>&1"));
    (out.status.code() != Some(0)).then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}
