//! The engine over a real folder, in real time.

use std::sync::Arc;

use steadfast_bench::iozone::{RunError, Surroundings, Test, matrix, run};
use steadfast_vfs::{FileSystem, FsError, HostFs};

use crate::options;

/// The folder, and the results of a command line in it. `None` where the folder's file system
/// has no direct I/O.
fn in_folder(line: &str) -> Option<steadfast_bench::iozone::IozoneResults> {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(HostFs::open(dir.path()).unwrap());
    let result = run(fs, "", &options(line), &Surroundings::default(), None);
    if !line.contains("-w") {
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    match result {
        Err(RunError { source: Some(FsError::Unsupported { what }), .. }) => {
            assert!(what.contains("O_DIRECT"), "{what}");
            None
        }
        result => Some(result.unwrap()),
    }
}

#[test]
fn all_tests_verified() {
    let line = "-+d -t 3 -T -s 2m -r 64k -e -c \
        -i 0 -i 1 -i 2 -i 3 -i 5 -i 6 -i 7 -i 8 -i 9 -i 10 -i 11 -i 12";
    let results = in_folder(line).unwrap();
    assert_eq!(results.runs[0].tests.len(), 15);
    for test in &results.runs[0].tests {
        assert!(test.summary.children_see > 0.0, "{:?}", test.test);
    }
}

#[test]
fn the_published_command_line_in_small() {
    let line = "-M -o -c -e -t3 -T -I -s 1m -r 256k -i0 -i2 -i6 -i8 -i9 -i11";
    let Some(results) = in_folder(line) else { return };
    let tests: Vec<Test> = results.runs[0].tests.iter().map(|t| t.test).collect();
    assert_eq!(tests.len(), 8);
    assert_eq!(tests[7], Test::Fwrite);
}

#[test]
fn files_stay_with_w_and_hold_stamped_data() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let fs = Arc::new(HostFs::open(dir.path()).unwrap());
    let o = options("-w -t 2 -s 256k -r 64k -i 0 -+n");
    run(fs, "sub", &o, &Surroundings::default(), None).unwrap();
    let data = std::fs::read(dir.path().join("sub/iozone.DUMMY.1")).unwrap();
    assert_eq!(data.len(), 256 << 10);
    let stamp = steadfast_block::pattern::stamp_of(&data[512..1024]).unwrap();
    assert_eq!((stamp.position, stamp.tag), (512, 2 << 48 | 1));
}

#[test]
fn a_folder_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(HostFs::open(dir.path()).unwrap());
    let o = options("-t 1 -s 64k -r 64k -i 0");
    let e = run(fs, "missing", &o, &Surroundings::default(), None).unwrap_err();
    assert!(e.to_string().contains("missing/iozone.DUMMY.0"), "{e}");
    assert_eq!(e.source, Some(FsError::NotFound));
}

/// A device named by mistake (`-f /dev/null`), and a file that is too short to be read, are refused
/// and still there: what the run has not made is not removed after its failure.
#[test]
fn what_is_refused_stays() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let fs = Arc::new(HostFs::open(dir.path()).unwrap());
    for line in ["-t 1 -F socket -s 64k -i 0", "-t 1 -F socket -s 64k -i 1"] {
        let ran = run(fs.clone(), "", &options(line), &Surroundings::default(), None);
        let why = ran.unwrap_err().to_string();
        assert!(why.contains("this is no regular file"), "{line}: {why}");
        assert!(socket.symlink_metadata().is_ok(), "{line}: it was removed");
    }
    let (alone, nothing) = (options("-s 64k -r 64k -i 0 -f socket"), Surroundings::default());
    let fs: Arc<dyn FileSystem> = fs;
    let cells = &mut matrix::SilentWatcher;
    let ran = matrix::run(&fs, "", &alone, &nothing, (&matrix::InProcessTarget, None), cells);
    assert!(ran.is_err_and(|why| why.to_string().contains("this is no regular file")));
    assert!(socket.symlink_metadata().is_ok(), "it was removed");
    std::fs::write(dir.path().join("short"), "of somebody").unwrap();
    for line in ["-s 64k -r 4k -i 1 -f short", "-t 1 -F short -s 64k -r 4k -i 1"] {
        let short = options(line);
        match short.matrix {
            None => drop(run(fs.clone(), "", &short, &nothing, None).unwrap_err()),
            Some(_) => {
                let cells = &mut matrix::SilentWatcher;
                let own = (&matrix::InProcessTarget as &dyn matrix::MatrixTarget, None);
                drop(matrix::run(&fs, "", &short, &nothing, own, cells).unwrap_err());
            }
        }
        assert_eq!(std::fs::read(dir.path().join("short")).unwrap(), b"of somebody", "{line}");
    }
}
