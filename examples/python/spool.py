"""A spool of jobs in a folder: each job is a file, which waits until it is done.

    python3 spool.py put TEXT       prints the number of the job, which is accepted from then on
    python3 spool.py next           prints the oldest job that waits
    python3 spool.py done NUMBER    the job is not to be done again
"""

import os
import sys


def sync_folder(path):
    """Makes the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Spool:
    """The jobs of one folder. One process at a time may use it."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path, exist_ok=True)
        sync_folder(os.path.dirname(os.path.abspath(path)))

    def jobs(self):
        """The jobs that wait, by their numbers, the oldest first."""
        found = {}
        for number in sorted(int(name) for name in os.listdir(self.path) if name.isdecimal()):
            with open(os.path.join(self.path, str(number)), encoding="utf-8") as job:
                found[number] = job.read()
        return found

    def put(self, text):
        """Accepts a job: when this returns its number, a power cut may not take it any more."""
        number = max(self.jobs(), default=0) + 1
        half = os.path.join(self.path, "half-written")
        with open(half, "w", encoding="utf-8") as job:
            job.write(text)
            job.flush()
            os.fsync(job.fileno())
        os.rename(half, os.path.join(self.path, str(number)))
        return number

    def done(self, number):
        """Takes a job away: when this returns, no power cut brings it back."""
        os.unlink(os.path.join(self.path, str(number)))
        sync_folder(self.path)


def main(words):
    """The command line."""
    spool = Spool("spool")
    if len(words) == 2 and words[0] == "put":
        print(spool.put(words[1]))
    elif words == ["next"]:
        for number, text in spool.jobs().items():
            print(number, text)
            break
    elif len(words) == 2 and words[0] == "done" and words[1].isdecimal():
        spool.done(int(words[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
