// Package settings keeps settings in a file, and a journal of records.
package settings

import (
	"fmt"
	"os"

	powercut "example.com/steadfast/helpers/go"
)

// Save replaces the settings as a whole; sync: in the right way.
func Save(text string, sync bool) error {
	file, err := os.Create("settings.new")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	if sync {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return os.Rename("settings.new", "settings")
}

// Append appends a record and acknowledges it; syncFirst: not before it is durable.
func Append(number int, syncFirst bool) error {
	journal, err := os.OpenFile("journal", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	if _, err := fmt.Fprintf(journal, "record %d\n", number); err != nil {
		return err
	}
	if syncFirst {
		if err := journal.Sync(); err != nil {
			return err
		}
		return powercut.Mark(fmt.Sprintf("acked %d", number))
	}
	if err := powercut.Mark(fmt.Sprintf("acked %d", number)); err != nil {
		return err
	}
	return journal.Sync()
}
