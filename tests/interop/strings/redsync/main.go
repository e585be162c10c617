// SPDX-License-Identifier: Apache-2.0

// redsync URL [URL URL]: takes and releases locks of redsync as its standard input says; ../redis_py.py describes the lines. KIND
// is `one`, for the first server, or `quorum`, for all.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	driver "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const retryDelay = 100 * time.Millisecond

// The times of the answers, which only have to be comparable with each other.
var start = time.Now()

func now() int64 { return time.Since(start).Nanoseconds() }

// A thread of the caller, with its locks.
type worker struct {
	servers map[string]*redsync.Redsync
	held    map[string]*redsync.Mutex
	orders  chan []string
}

func (w *worker) run() {
	for words := range w.orders {
		answer, err := w.execute(words[2], words[3], words[4], words[5:])
		if err != nil {
			answer = fmt.Sprintf("error %T %v", err, strings.ReplaceAll(err.Error(), "\n", " "))
		}
		fmt.Println(words[0], now(), answer)
	}
}

func (w *worker) execute(verb, kind, key string, args []string) (string, error) {
	name := kind + " " + key
	switch verb {
	case "lock":
		w.held[name] = w.servers[kind].NewMutex(key, redsync.WithExpiry(millis(args[1])),
			redsync.WithTries(1+int(millis(args[0])/retryDelay)), redsync.WithRetryDelay(retryDelay))
		if err := w.held[name].Lock(); err != nil {
			return "busy", nil
		}
		return "held", nil
	case "extend":
		redsync.WithExpiry(millis(args[0])).Apply(w.held[name])
		if done, err := w.held[name].Extend(); !done {
			return "", fmt.Errorf("not extended: %w", err)
		}
		return "extended", nil
	case "unlock":
		before := now()
		if done, err := w.held[name].Unlock(); !done {
			return "", fmt.Errorf("not unlocked: %w", err)
		}
		return fmt.Sprint("released ", before), nil
	}
	return "", fmt.Errorf("unknown verb %s", verb)
}

func millis(text string) time.Duration {
	number, _ := strconv.Atoi(text)
	return time.Duration(number) * time.Millisecond
}

func connect(urls []string) *redsync.Redsync {
	var pools []driver.Pool
	for _, url := range urls {
		options, err := redis.ParseURL(url)
		if err != nil {
			panic(err)
		}
		pools = append(pools, goredis.NewPool(redis.NewClient(options)))
	}
	return redsync.New(pools...)
}

func runJob(server *redsync.Redsync, key string, job []string) {
	lock := server.NewMutex(key, redsync.WithExpiry(time.Minute), redsync.WithTries(1000000))
	if err := lock.Lock(); err != nil {
		panic(err)
	}
	command := exec.Command(job[0], job[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Run()
	if done, err := lock.Unlock(); !done {
		panic(err)
	}
	os.Exit(command.ProcessState.ExitCode())
}

func main() {
	if len(os.Args) > 3 && os.Args[2] == "--" {
		runJob(connect(os.Args[1:2]), os.Args[3], os.Args[4:])
	}
	servers := map[string]*redsync.Redsync{"one": connect(os.Args[1:2]), "quorum": connect(os.Args[1:])}
	workers := map[string]*worker{}
	fmt.Println(0, now(), "ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if workers[words[1]] == nil {
			workers[words[1]] = &worker{servers, map[string]*redsync.Mutex{}, make(chan []string, 16)}
			go workers[words[1]].run()
		}
		workers[words[1]].orders <- words
	}
}
