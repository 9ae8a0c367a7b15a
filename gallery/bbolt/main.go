// The driver of bbolt: each record is a transaction, which also writes an older record anew.
// `driver write` prints what it has committed, `driver read` what is left.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	bolt "go.etcd.io/bbolt"
)

const count = 25

func key(n int) []byte   { return []byte(fmt.Sprintf("%04d", n)) }
func value(n int) []byte { return []byte(strings.Repeat(fmt.Sprintf("%d ", n), 1000)) }

func main() {
	work := write
	if os.Args[1] == "read" {
		work = read
	}
	db, err := bolt.Open("db", 0o600, nil)
	if err == nil {
		err = work(db)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func write(db *bolt.DB) error {
	for n := 1; n <= count; n++ {
		err := db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("records"))
			if err != nil {
				return err
			}
			older := (n + 1) / 2
			if err := bucket.Put(key(older), value(older)); err != nil {
				return err
			}
			return bucket.Put(key(n), value(n))
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
	return db.Close()
}

func read(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		// bbolt's own check, as of `bbolt check`.
		for err := range tx.Check() {
			return err
		}
		bucket := tx.Bucket([]byte("records"))
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(k, v []byte) error {
			var n int
			if _, err := fmt.Sscanf(string(k), "%d", &n); err != nil {
				return err
			}
			if !bytes.Equal(v, value(n)) {
				return fmt.Errorf("record %d has another value", n)
			}
			fmt.Println(n)
			return nil
		})
	})
}
