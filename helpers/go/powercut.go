// Package powercut is for power-cut tests of Go programs with Steadfast.
//
// A test registers functions as programs (Program, in its TestMain) and runs one of them under
// `steadfast crash run` (Run), which cuts its power at many instants and judges what is left. The
// functions for the program, from Mark to FailNext, talk to the control socket; where no test runs
// they do nothing, so they may stay in it.
package powercut

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// Unsynced is what a power cut would take now.
type Unsynced struct {
	Bytes, Calls uint64
	Ms           float64
	Files        []struct {
		Path         string
		Bytes, Calls uint64
		Ms           float64
	}
	Names []string
}

// Ask sends a line to the control socket; the answer behind its "ok". Without a socket there is
// none.
func Ask(request string) (string, error) {
	path := os.Getenv("STEADFAST_CONTROL")
	if path == "" {
		return "", nil
	}
	if strings.Contains(request, "\n") {
		return "", fmt.Errorf("a request is one line")
	}
	control, err := net.Dial("unix", path)
	if err != nil {
		return "", err
	}
	defer control.Close()
	if _, err := fmt.Fprintln(control, request); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(control).ReadString('\n')
	if err != nil {
		return "", err
	}
	word, more, _ := strings.Cut(strings.TrimSuffix(answer, "\n"), " ")
	if word != "ok" {
		return "", fmt.Errorf("steadfast: %s", more)
	}
	return more, nil
}

func only(_ string, err error) error { return err }

// Mark acknowledges something: from now on it must survive. It returns once that is recorded.
func Mark(text string) error { return only(Ask("mark " + text)) }

// Cut lets the power be cut here, in every way that there is.
func Cut() error { return only(Ask("cut")) }

// Begin begins a part: only what comes between it and End is cut. There may be several parts.
func Begin() error { return only(Ask("begin")) }

// End ends a part.
func End() error { return only(Ask("end")) }

// WouldLose says what a cut would take now.
func WouldLose() (unsynced Unsynced, err error) {
	answer, err := Ask("unsynced")
	if err == nil && answer != "" {
		err = json.Unmarshal([]byte(answer), &unsynced)
	}
	return unsynced, err
}

// FailNext lets the next what ("fsync", "write") of a path fail with an error, as "ENOSPC".
func FailNext(what, path, with string) error {
	quoted, err := json.Marshal(path)
	if err != nil {
		return err
	}
	return only(Ask(fmt.Sprintf("fail next %s of %s with %s", what, quoted, with)))
}

const prefix = "powercut:"

// Program registers a function, to be called in TestMain before m.Run: where this process is one
// that Run has started for it, it runs the function, in the folder under test, and ends.
func Program(name string, run func() error) {
	if len(os.Args) != 2 || os.Args[1] != prefix+name {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Acknowledged are the lines that were acknowledged before the cut: for a program that judges.
func Acknowledged() ([]string, error) {
	printed, err := os.ReadFile(os.Getenv("STEADFAST_PRINTED"))
	if len(printed) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(printed), "\n"), "\n"), nil
}

// T is the part of *testing.T that Run needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Run runs a registered program under power cuts, with another one as its judge ("": what every
// program may expect is judged) and further words for `steadfast crash run`. The test fails with
// what was found. What is printed is returned.
func Run(t T, program, judge string, options ...string) string {
	t.Helper()
	words := append([]string{"crash", "run", "--wide"}, options...)
	own, err := os.Executable()
	if err != nil {
		t.Fatalf("this program's own file: %v", err)
	}
	if judge != "" {
		words = append(words, "--judge", "'"+strings.ReplaceAll(own, "'", `'\''`)+"' "+prefix+judge)
	}
	steadfast := os.Getenv("STEADFAST")
	if steadfast == "" {
		steadfast = "steadfast"
	}
	var said, notes bytes.Buffer
	command := exec.Command(steadfast, append(words, "--", own, prefix+program)...)
	command.Stdout, command.Stderr = &said, &notes
	if err := command.Run(); command.ProcessState != nil && command.ProcessState.ExitCode() == 1 {
		t.Fatalf("a power cut breaks %s:\n%s", program, &said)
	} else if err != nil {
		t.Fatalf("nothing was judged: %v\n%s%s", err, &said, &notes)
	}
	return said.String()
}
