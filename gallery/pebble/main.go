// The driver of Pebble, with a small memtable, so that there are flushes and compactions.
// `driver write` prints what it has written, `driver read` what is left.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble"
)

const count = 25

func value(n int) []byte { return []byte(strings.Repeat(fmt.Sprintf("%d ", n), 1000)) }

// What goes wrong is returned; Pebble need not log the rest.
type silent struct{}

func (silent) Infof(string, ...interface{})  {}
func (silent) Errorf(string, ...interface{}) {}
func (silent) Fatalf(format string, args ...interface{}) {
	fmt.Printf(format+"\n", args...)
	os.Exit(1)
}

func main() {
	work := write
	if os.Args[1] == "read" {
		work = read
	}
	db, err := pebble.Open("db", &pebble.Options{MemTableSize: 256 << 10, Logger: silent{}})
	if err == nil {
		err = work(db)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func write(db *pebble.DB) error {
	for n := 1; n <= count; n++ {
		if err := db.Set([]byte(fmt.Sprintf("%04d", n)), value(n), pebble.Sync); err != nil {
			return err
		}
		fmt.Println(n)
		if n%8 == 0 {
			if err := db.Flush(); err != nil {
				return err
			}
		}
	}
	return db.Close()
}

func read(db *pebble.DB) error {
	if err := db.CheckLevels(nil); err != nil {
		return err
	}
	all, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := all.First(); ok; ok = all.Next() {
		var n int
		if _, err := fmt.Sscanf(string(all.Key()), "%d", &n); err != nil {
			return err
		}
		if !bytes.Equal(all.Value(), value(n)) {
			return fmt.Errorf("record %d has another value", n)
		}
		fmt.Println(n)
	}
	return all.Close()
}
