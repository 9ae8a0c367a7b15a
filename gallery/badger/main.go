// The driver of Badger, with small tables and logs, so that there are flushes, and they fit the
// disk. `driver write sync|nosync KEPT` prints what it has committed, `driver read ...` what is left.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const count = 25

func value(n int) []byte { return []byte(strings.Repeat(fmt.Sprintf("%d ", n), 1000)) }

func main() {
	work := write
	if os.Args[1] == "read" {
		work = read
	}
	options := badger.DefaultOptions("db").WithSyncWrites(os.Args[2] == "sync").WithLogger(nil)
	options = options.WithMemTableSize(64 << 10).WithValueThreshold(8 << 10)
	options = options.WithValueLogFileSize(1 << 20)
	db, err := badger.Open(options)
	if err == nil {
		err = work(db)
	}
	if err != nil {
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func write(db *badger.DB) error {
	for n := 1; n <= count; n++ {
		err := db.Update(func(tx *badger.Txn) error {
			return tx.Set([]byte(fmt.Sprintf("%04d", n)), value(n))
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
		// What is not synced, the file system writes after seconds: then there is still more.
		if os.Args[3] == "some" {
			time.Sleep(250 * time.Millisecond)
		}
	}
	return db.Close()
}

func read(db *badger.DB) error {
	if err := db.VerifyChecksum(); err != nil {
		return err
	}
	return db.View(func(tx *badger.Txn) error {
		all := tx.NewIterator(badger.DefaultIteratorOptions)
		defer all.Close()
		for all.Rewind(); all.Valid(); all.Next() {
			var n int
			if _, err := fmt.Sscanf(string(all.Item().Key()), "%d", &n); err != nil {
				return err
			}
			left, err := all.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			if !bytes.Equal(left, value(n)) {
				return fmt.Errorf("record %d has another value", n)
			}
			fmt.Println(n)
		}
		return nil
	})
}
