// Command ledger keeps accounts in an append-only file.
//
//	ledger post ACCOUNT CENTS    appends an entry and prints the balance of the account
//	ledger balances              prints the balance of each account
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
)

const usage = "usage: ledger post ACCOUNT CENTS | ledger balances"

func run(words []string) error {
	ledger, err := Open("ledger")
	if err != nil {
		return err
	}
	defer ledger.Close()
	switch {
	case len(words) == 3 && words[0] == "post":
		cents, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return err
		}
		if err := ledger.Post(Entry{words[1], cents}); err != nil {
			return err
		}
		fmt.Println(ledger.Balance[words[1]])
	case len(words) == 1 && words[0] == "balances":
		accounts := make([]string, 0, len(ledger.Balance))
		for account := range ledger.Balance {
			accounts = append(accounts, account)
		}
		sort.Strings(accounts)
		for _, account := range accounts {
			fmt.Println(account, ledger.Balance[account])
		}
	default:
		return fmt.Errorf(usage)
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
