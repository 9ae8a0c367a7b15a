package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	powercut "example.com/steadfast/helpers/go"
)

func TestMain(m *testing.M) {
	powercut.Program("post", post)
	powercut.Program("audit", audit)
	os.Exit(m.Run())
}

// post is the program under test. It marks what a customer has been told.
func post() error {
	ledger, err := Open("ledger")
	if err != nil {
		return err
	}
	for number := 1; number <= 3; number++ {
		if err := ledger.Post(Entry{"anna", 100}); err != nil {
			return err
		}
		if err := powercut.Mark(fmt.Sprintf("posted %d", number)); err != nil {
			return err
		}
	}
	return ledger.Close()
}

// audit is the judge: it runs in the folder as the next boot finds it.
func audit() error {
	told, err := powercut.Acknowledged()
	if err != nil {
		return err
	}
	ledger, err := Open("ledger")
	if err != nil {
		return err
	}
	if has, want := ledger.Balance["anna"], 100*int64(len(told)); has < want || has > want+100 {
		return fmt.Errorf("anna has %d, and %d were posted", has, want)
	}
	// It works on.
	if err := ledger.Post(Entry{"bert", 1}); err != nil {
		return err
	}
	if ledger, err = Open("ledger"); err == nil && ledger.Balance["bert"] != 1 {
		err = fmt.Errorf("what is posted after the power cut is lost")
	}
	return err
}

func TestLedgerSurvives(t *testing.T) {
	report := powercut.Run(t, "post", "audit", "--linger", "0.2",
		"--record", "ledger.crash", "--junit", "ledger.xml")
	// Of a program that has failed at once there is nothing to lose.
	if !strings.Contains(report, "the program ended with status 0") {
		t.Fatal(report)
	}
}
