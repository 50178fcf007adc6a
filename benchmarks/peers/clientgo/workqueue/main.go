// Command workqueue does with client-go's typed rate limiting queue, the one that controllers are built on, what
// benchmarks/bench_workqueue.py does with ours, and prints what it took as one JSON object.
//
// One process measures one case, so that the benchmark can take turns with the other queues.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/util/workqueue"
)

// result is what is printed: how often the operation was done, and what all of it took.
type result struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
}

type queue = workqueue.TypedRateLimitingInterface[string]

// cases maps a name to a function that sets a case up and gives the part that is measured.
var cases = map[string]func(q queue, operations int) func(){
	"add-get-done":    addGetDone,
	"add-all-get-all": addAllGetAll,
	"workers":         workers,
	"duplicate-add":   duplicateAdd,
	"add-after":       addAfter,
}

func main() {
	name := flag.String("case", "add-get-done", "add-get-done, add-all-get-all, workers, duplicate-add or add-after")
	operations := flag.Int("operations", 1_000_000, "how often to do it")
	waiting := flag.Int("waiting", 0, "items that wait for their time meanwhile (add-get-done, add-after)")
	flag.Parse()
	prepare, known := cases[*name]
	if !known || *operations < 1 || *waiting < 0 {
		flag.Usage()
		os.Exit(2)
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer q.ShutDown()
	for i := range *waiting {
		q.AddAfter(fmt.Sprintf("waiting/pod-%06d", i), someDelay())
	}
	if *waiting > 0 {
		time.Sleep(100 * time.Millisecond) // the queue's own goroutine still takes in the last thousand
	}
	measured := prepare(q, *operations)

	runtime.GC()
	cpu, start := cpuSeconds(), time.Now()
	measured()
	took := result{*operations, time.Since(start).Seconds(), cpuSeconds() - cpu}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// addGetDone adds an item, gets it and is done with it, on one goroutine.
func addGetDone(q queue, operations int) func() {
	items := names("default", 1000)
	return func() {
		for i := range operations {
			q.Add(items[i%len(items)])
			item, _ := q.Get()
			q.Done(item)
		}
	}
}

// addAllGetAll adds a thousand items, then gets each and is done with it, over and over, on one goroutine.
func addAllGetAll(q queue, operations int) func() {
	items := names("default", 1000)
	return func() {
		for range operations / len(items) {
			for _, item := range items {
				q.Add(item)
			}
			for range items {
				item, _ := q.Get()
				q.Done(item)
			}
		}
	}
}

// workers lets one goroutine add distinct items, and four get them and be done with them.
func workers(q queue, operations int) func() {
	items := names("default", operations)
	return func() {
		var working sync.WaitGroup
		for range 4 {
			working.Go(func() {
				for {
					item, shutDown := q.Get()
					if shutDown {
						return
					}
					q.Done(item)
				}
			})
		}
		for _, item := range items {
			q.Add(item)
		}
		q.ShutDown() // what is queued is still handed out
		working.Wait()
	}
}

// duplicateAdd adds an item that is queued already.
func duplicateAdd(q queue, operations int) func() {
	const item = "default/pod-000000"
	q.Add(item)
	return func() {
		for range operations {
			q.Add(item)
		}
	}
}

// addAfter adds items that wait, each for a time of its own. The last thousand may still be on their way into the heap
// when the measurement ends: client-go hands them to a goroutine through a channel of that length.
func addAfter(q queue, operations int) func() {
	items := names("default", operations)
	delays := make([]time.Duration, operations)
	for i := range delays {
		delays[i] = someDelay()
	}
	return func() {
		for i, item := range items {
			q.AddAfter(item, delays[i])
		}
	}
}

func names(namespace string, count int) []string {
	made := make([]string, count)
	for i := range made {
		made[i] = fmt.Sprintf("%s/pod-%06d", namespace, i)
	}
	return made
}

// someDelay is a time between half an hour and an hour: nothing becomes due while it is measured.
func someDelay() time.Duration {
	return 30*time.Minute + rand.N(30*time.Minute)
}

// cpuSeconds is the processor time of all threads so far, by the clock that Python's process_time reads.
func cpuSeconds() float64 {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		panic(err) // every Linux has this clock
	}
	return float64(used.Nano()) / 1e9
}
