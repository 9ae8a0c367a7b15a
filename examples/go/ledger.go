package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Entry is one posting; each is a line of JSON in the ledger.
type Entry struct {
	Account string
	Cents   int64
}

// Ledger is an open ledger. Entries are only ever appended.
type Ledger struct {
	file    *os.File
	Balance map[string]int64
}

// Open opens a ledger, makes it if it is not there, and adds up what it holds.
func Open(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	ledger := &Ledger{file, map[string]int64{}}
	return ledger, ledger.read()
}

func (l *Ledger) read() error {
	lines := bufio.NewReader(l.file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return fmt.Errorf("line %d of the ledger is damaged: %w", number, err)
		}
		l.Balance[entry.Account] += entry.Cents
	}
}

// Post appends an entry. When it returns nil the entry is durable.
func (l *Ledger) Post(entry Entry) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.Balance[entry.Account] += entry.Cents
	return nil
}

// Close closes the ledger.
func (l *Ledger) Close() error { return l.file.Close() }

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
