"""Power-cut tests: a pytest fixture, and the words of Steadfast's control socket.

The fixture `power_cut` runs a program under `steadfast crash run`, which cuts its power at many
instants and judges what is left; the test fails with what was found. A program is a function of a
test's module, or a list of words. The other functions are for the program: under `crash run` they
talk to the control socket; anywhere else they do nothing, so they may stay in it.
"""

import functools
import importlib.util
import inspect
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys

pytest = sys.modules.get("pytest")  # There as its plugin; a program under test needs none.


class ControlError(Exception):
    """The control socket has refused a request; says why."""


def ask(request):
    """Sends a line to the control socket; its answer, as JSON where there is some."""
    path = os.environ.get("STEADFAST_CONTROL")
    if path is None:
        return None
    if "\n" in request:
        raise ControlError("a request is one line")
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(path)
        control.sendall(request.encode() + b"\n")
        with control.makefile(encoding="utf-8") as answers:
            answer = answers.readline()
    word, _, more = answer.rstrip("\n").partition(" ")
    if word != "ok":
        raise ControlError(more or "no answer")
    return json.loads(more) if more else None


def mark(text):
    """Acknowledges something: from now on it must survive. Returns once that is recorded."""
    ask(f"mark {text}")


def cut():
    """The power is cut here, in every way that there is."""
    ask("cut")


def begin():
    """Only what comes between begin() and end() is cut; there may be several such parts."""
    ask("begin")


def end():
    """See begin()."""
    ask("end")


def unsynced():
    """What a cut would take now: a dict with 'bytes', 'calls', 'ms', 'files', 'names', or None."""
    return ask("unsynced")


def fail_next(what, path, error="EIO", times=1):
    """Lets the next `what` ("fsync" or "write") of a path fail, so many times."""
    ask(f"fail next {what} of {json.dumps(str(path))} with {error} times {times}")


def _command(program):
    """The words that run a function of a module, or a command."""
    if not callable(program):
        return [str(word) for word in ([program] if isinstance(program, str) else program)]
    given = []
    if isinstance(program, functools.partial):
        given, program = list(program.args), program.func
    words = [sys.executable, os.path.abspath(__file__), inspect.getsourcefile(program)]
    return words + [program.__qualname__, json.dumps(given)]


def run(program, judge=None, setup=None, options=()):
    """Runs a program under power cuts: `crash run`, with its output as text.

    program -- a function of a module (or a functools.partial of one), or a list of words
    judge -- a function that gets the acknowledged lines, in the recovered folder, and raises; or
             a shell command; without one, what every program may expect is judged
    setup -- what is there before the run: as program; a text is a shell command
    options -- further words for `steadfast crash run`
    """
    steadfast = os.environ.get("STEADFAST") or shutil.which("steadfast")
    if steadfast is None:
        raise FileNotFoundError("no program 'steadfast' on the path, nor in $STEADFAST")
    words = [steadfast, "crash", "run", "--wide", *options]
    for option, what in (("--judge", judge), ("--setup", setup)):
        if what is not None:
            words += [option, what if isinstance(what, str) else shlex.join(_command(what))]
    words += ["--", *_command(program)]
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


if pytest is not None:

    @pytest.fixture
    def power_cut():
        """Runs a program under power cuts and fails the test with what was found; see run()."""

        def power_cut(program, judge=None, setup=None, options=()):
            done = run(program, judge, setup, options)
            if done.returncode == 1:
                pytest.fail(f"a power cut breaks it:\n{done.stdout}", pytrace=False)
            if done.returncode != 0:
                why = f"steadfast ended with status {done.returncode}; nothing was judged"
                pytest.fail(f"{why}:\n{done.stdout}\n{done.stderr}", pytrace=False)
            return done.stdout

        return power_cut


def _call(file, name, given):
    """Calls a function of a file, in the current folder; a judge gets the acknowledged lines."""
    sys.path.insert(0, os.path.dirname(file))
    spec = importlib.util.spec_from_file_location("program_under_test", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    printed = os.environ.get("STEADFAST_PRINTED")
    if printed is not None:
        with open(printed, encoding="utf-8", errors="replace") as lines:
            given = [*given, lines.read().splitlines()]
    function = functools.reduce(getattr, name.split("."), module)
    function(*given)


if __name__ == "__main__":
    # Of its own module there is one: what the program imports is this, too.
    sys.modules["steadfast_powercut"] = sys.modules["__main__"]
    try:
        _call(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
    except Exception as e:
        if "STEADFAST_PRINTED" in os.environ:  # The first line is what is said of a finding.
            print(str(e) or type(e).__name__, flush=True)
        raise
