package settings

import (
	"fmt"
	"os"
	"strings"
	"testing"

	powercut "example.com/steadfast/helpers/go"
)

// old is what is there before each run.
const old = "printf colour=blue > settings; touch journal; sync settings journal ."

func TestMain(m *testing.M) {
	powercut.Program("saves", func() error { return Save("colour=green", true) })
	powercut.Program("forgets", func() error { return Save("colour=green", false) })
	powercut.Program("appends", func() error { return appends(true) })
	powercut.Program("acks-early", func() error { return appends(false) })
	powercut.Program("ignores", func() error { return withFailingSync(false) })
	powercut.Program("stops", func() error { return withFailingSync(true) })
	powercut.Program("asks", asks)
	powercut.Program("judge", judge)
	os.Exit(m.Run())
}

func appends(syncFirst bool) error {
	for number := 0; number < 3; number++ {
		if err := Append(number, syncFirst); err != nil {
			return err
		}
	}
	return nil
}

// withFailingSync acknowledges a record whose sync has failed, unless it stops.
func withFailingSync(stop bool) error {
	if err := powercut.FailNext("fsync", "journal", "EIO"); err != nil {
		return err
	}
	err := Append(17, true)
	if err == nil {
		return fmt.Errorf("the sync has not failed")
	}
	if stop {
		return nil
	}
	return powercut.Mark("acked 17")
}

// asks uses every word.
func asks() error {
	if err := powercut.Begin(); err != nil {
		return err
	}
	journal, err := os.OpenFile("journal", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	if _, err := journal.WriteString("record 1\n"); err != nil {
		return err
	}
	lost, err := powercut.WouldLose()
	if err != nil || lost.Bytes != 9 || len(lost.Files) != 1 || lost.Files[0].Path != "journal" {
		return fmt.Errorf("unsynced: %+v, %v", lost, err)
	}
	if err := powercut.Cut(); err != nil {
		return err
	}
	if err := journal.Sync(); err != nil {
		return err
	}
	return powercut.End()
}

// judge says which acknowledged records are not in the journal.
func judge() error {
	acknowledged, err := powercut.Acknowledged()
	if err != nil {
		return err
	}
	journal, err := os.ReadFile("journal")
	if err != nil {
		return err
	}
	for _, line := range acknowledged {
		record := strings.Replace(line, "acked", "record", 1) + "\n"
		if !strings.Contains(string(journal), record) {
			return fmt.Errorf("%s: it is not in the journal", line)
		}
	}
	return nil
}

func run(t *testing.T, program, judge string) string {
	t.Helper()
	return powercut.Run(t, program, judge, "--linger", "0.2", "--setup", old)
}

// Each of these has a bug, and must fail.
func TestPlanted(t *testing.T) {
	t.Run("settings", func(t *testing.T) { run(t, "forgets", "") })
	t.Run("appends", func(t *testing.T) { run(t, "acks-early", "judge") })
	t.Run("sync", func(t *testing.T) { run(t, "ignores", "") })
}

func TestTwins(t *testing.T) {
	t.Run("settings", func(t *testing.T) { run(t, "saves", "") })
	t.Run("appends", func(t *testing.T) { run(t, "appends", "judge") })
	t.Run("sync", func(t *testing.T) { run(t, "stops", "") })
	t.Run("words", func(t *testing.T) {
		if said := run(t, "asks", "judge"); !strings.Contains(said, "1 cut, 1 part") {
			t.Fatalf("%s", said)
		}
	})
}

func TestWithoutSteadfastTheWordsDoNothing(t *testing.T) {
	if err := powercut.Mark("nothing"); err != nil {
		t.Fatal(err)
	}
}
