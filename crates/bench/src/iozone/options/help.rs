//! The text of -h.

/// What can be given, for people.
pub const HELP: &str = "\
IOzone's throughput mode on any file system.

Usage: iozone -t N [options]

How many, how large
  -t N        N children; repeat for several runs
  -l N -u N   from N children up to N
  -s SIZE     size of each child's file (512 kB)
  -r SIZE     size of a record (4 kB, at most 16 MB)
              sizes are kB, or with k, m or g behind the number
  -i N        run this test; repeat for more (all but 11 and 12)
              0 write, rewrite      1 read, re-read       2 random read, random write
              3 reverse read        5 stride read         6 fwrite        7 fread
              8 random mix          9 pwrite             10 pread
             11 pwritev            12 preadv
  -+n         no rewrite, no re-read
  -j N        stride of test 5 in records (17)
  -+p N       N per cent of the children read in test 8 (every other one)
  -+K N       N of the children read in test 8
  -+B         test 8 reads and writes in order

Where
  -F F1 F2 .. one file for each child; after -t
  -f FILE     the files are FILE.DUMMY.0, .1 .. (iozone.DUMMY.0, .1 ..)
  -w          leave the files in place
  -+N         test 0 does not empty files that are there

How
  -o          O_SYNC          -+D   O_DSYNC          -I   O_DIRECT
  -e          fsync inside the timing
  -c          close inside the timing
  -x          no stonewall: all children count to their end
  -d N        N microseconds between the children's starts
  -+d         check every byte that is read

Output
  -C          a line for each child
  -O          operations a second instead of kB
  -R          a report at the end
  -M          the machine's name in the header
  -T          say \"threads\" instead of \"processes\"
  --json FILE the results as JSON, with percentiles (- is standard output)

Rest
  --settle N  seconds of rest after each test (2)
  -+q N       seconds of further rest after each test (0)
  -S N -L N   processor cache in kB and its line in bytes: in the header only
  -E -z       no effect in this mode
  -h -v       this text; the version
";
