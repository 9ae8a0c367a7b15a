//! The text of -h.

/// What can be given, for people.
pub const HELP: &str = "\
IOzone on any file system: one file at a time, or many children.

Usage: iozone [options]            one file, one record size
       iozone -a [options]         all file sizes with all record sizes
       iozone -t N [options]       N children, each with a file of its own

Examples: iozone -s 64m -r 4k -i 0 -i 1 -e      one file, fsync in the time
          iozone -a -g 64m -I                   all sizes to 64 MiB, O_DIRECT
          iozone -t 4 -s 16m -o -i 0 -i 2       four children, O_SYNC

Sizes are KiB, or with k, m or g behind the number.

Which tests
  -i N        run this test; repeat for more
              0 write, rewrite    1 read, re-read    2 random read, write
              3 backward read     4 record rewrite   5 stride read
              6 fwrite            7 fread            8 random mix (with -t)
              9 pwrite (-E)      10 pread (-E)      11 pwritev   12 preadv
              without it: 0 to 7; with -t all but 4, 11 and 12
  -E          pwrite and pread, too
  -+n         no second pass
  -j N        stride of test 5 in records (17)

One file at a time
  -s SIZE     size of the file (512 KiB)   -r SIZE   of a record (4 KiB)
              both can be repeated: each with each
  -a          files of 64 KiB to 512 MiB, records of 4 KiB to 16 MiB, doubling
  -n -g SIZE  smallest, largest file      -y -q SIZE  record
  -z          small records with files over 16 MiB, too
  -+x N       N times as large instead of doubling
  -A          the same as -az -i 0 -i 1
  -f FILE     the file (iozone.tmp)
  -H N, -k N  N requests at a time, with and without copying (not POSIX AIO's
              own calls: N tasks)
  -B          through a mapping (this machine's files only); -D, -G with
              msync(MS_ASYNC), msync(MS_SYNC) a record; -Z: every other record
              by read and write
  -J N        N ms of computing before each operation, taken off
  -K          reads at other offsets in between
  -W          the whole file is locked
  -X F, -Y F  telemetry: lines of byte offset, bytes, ms of computing before,
              for tests 0 and 1
  -P N        run on processor N
  -N          microseconds an operation
  --repeat N  each cell N times: means, and 95 % confidence intervals
  --resume F  keep each cell in F; an interrupted run continues from there
  --drop-caches   before each test that reads; --json says how

Many children
  -t N        N children; repeat for several runs
  -l N -u N   from N children up to N
  -F F1 F2 .. one file for each child (iozone.DUMMY.0, .1 ..); after -t
  -x          no stonewall: all children count to their end
  -d N        N microseconds between the children's starts
  -+p N       N per cent of the children read in test 8 (every other one)
  -+K N       N of the children read in test 8
  -+B         test 8 reads and writes in order
  -C          a line for each child
  -T          say \"threads\" instead of \"processes\"
  --settle N  seconds of pause after each test (2)
  -+q N       seconds of further pause after each test (0)

How
  -o          O_SYNC          -+D   O_DSYNC          -I   O_DIRECT
  -e          fsync inside the timing
  -c          close inside the timing
  -w          leave the files in place
  -+N         test 0 does not empty files that are there
  -+d         check every byte that is read
  -V N        all bytes are N, and are checked
  -+w N       N per cent of each record are the same in all files; of these
  -+y N       N per cent the same in all records, too
  -+C N       N per cent the same in all records of the file only

Output
  -O          operations a second instead of kB
  -R          a report at the end      -b FILE  also as a spreadsheet (.xls)
  -M          the machine's name in the header
  -Q          files with the latency of each operation (wol.dat, rol.dat ...)
  -+u         processor use, in the report
  -+z         no effect: --json has percentiles of every operation
  --json FILE the results as JSON, with percentiles (- is standard output)
  --wide      this layout of IOzone's also on a terminal, which gets the answer
              in a few sentences and a table
  -S N -L N   processor cache in kB and its line in bytes: in the header only
  -h -v       this text; the version

In an image or on a variant of a scenario
  --image IMAGE [--journal IMAGE]       in an image
  --stack SCENARIO --variant NAME       on a variant of a scenario, made for
              this run, in virtual time; --real-time, --memory SIZE, --seed N
";
