// Package workqueue plays histories on client-go's typed rate limiting queue or on controller-runtime's priority queue:
// JSON lines on the standard input, and for each of them the answers of its steps as one JSON line on the standard output.
//
// It is a test because of testing/synctest, which only a test may use: synctest.Wait returns when every goroutine of the
// queue is blocked until the next step, so that each answer shows the queue settled, without a sleep and without a
// guess. Build it with "go test -c".
package workqueue

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func TestReplay(t *testing.T) {
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	answers := json.NewEncoder(output)
	for number := 1; ; number++ {
		var each history
		switch err := input.Decode(&each); {
		case err == io.EOF && number == 1:
			t.Skip("no histories on the standard input")
		case err == io.EOF:
			return
		case err != nil:
			t.Fatalf("history %d: %v", number, err)
		}
		synctest.Test(t, func(t *testing.T) {
			if err := answers.Encode(play(each)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// player plays to one queue.
type player struct {
	workqueue.TypedRateLimitingInterface[string]
	clock    *clocktesting.FakeClock // moves together with the bubble's own clock
	metrics  metrics
	drained  atomic.Int64
	panicked atomic.Int64
	add      func(step)                 // an add with a priority
	take     func() (string, int, bool) // GetWithPriority
	getter   chan answer                // of a Get that blocks; nil if none does
	end      func()                     // leaves no goroutine behind
}

// play goes through a history in a bubble of its own.
func play(h history) []answer {
	p := &player{clock: clocktesting.NewFakeClock(time.Now())}
	switch h.Queue {
	case "client-go":
		p.useClientGo(h.Limiter)
	case "controller-runtime":
		p.useControllerRuntime(h.Limiter)
	default:
		panic(fmt.Sprintf("no queue %q", h.Queue))
	}
	synctest.Wait()
	answers := []answer{}
	for _, each := range h.Steps {
		answers = append(answers, p.look(each, p.do(each)))
	}
	p.end()
	return answers
}

// useClientGo makes the queues that a rate limiting queue makes itself, because the innermost one is needed at the end.
func (p *player) useClientGo(limiter limiter) {
	basic := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
		Name: "replay", Clock: p.clock, MetricsProvider: &p.metrics,
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
		Name: "replay", Clock: p.clock, MetricsProvider: &p.metrics, Queue: basic,
	})
	p.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(
		limiter.build(), workqueue.TypedRateLimitingQueueConfig[string]{DelayingQueue: delaying})
	p.take = func() (item string, priority int, shutDown bool) {
		item, shutDown = p.Get()
		return item, 0, shutDown
	}
	p.end = func() {
		p.ShutDown()     // ends the delaying queue's loop
		basic.ShutDown() // ends every drain that still waits, which the one before does once only
	}
}

func (p *player) useControllerRuntime(limiter limiter) {
	queue := priorityqueue.New("replay", func(options *priorityqueue.Opts[string]) {
		if limiter.Kind != "default" {
			options.RateLimiter = limiter.build()
		}
		options.MetricProvider = &p.metrics
	})
	p.TypedRateLimitingInterface = queue
	p.add = func(s step) {
		queue.AddWithOpts(priorityqueue.AddOpts{
			After: s.For, RateLimited: s.Op == "add_rate_limited", Priority: s.Priority,
		}, s.Item)
	}
	p.take = queue.GetWithPriority
	p.end = func() {
		if !p.ShuttingDown() {
			p.ShutDown()
		}
	}
}

// do takes one step and returns when the queue has settled. The answer is what a get gave, or that the step panicked.
func (p *player) do(s step) (got answer) {
	defer synctest.Wait()
	defer func() {
		if problem := recover(); problem != nil {
			got.Result = "panic"
		}
	}()
	if s.Priority != nil {
		p.add(s)
		return answer{}
	}
	switch s.Op {
	case "add":
		p.Add(s.Item)
	case "add_after":
		p.AddAfter(s.Item, s.For)
	case "add_rate_limited":
		p.AddRateLimited(s.Item)
	case "get":
		return p.get()
	case "done":
		p.Done(s.Item)
	case "forget":
		p.Forget(s.Item)
	case "advance":
		time.Sleep(s.For) // passes at once, as everybody else is blocked
		p.clock.Step(s.For)
	case "shut_down":
		p.ShutDown()
	case "shut_down_with_drain":
		go func() {
			defer func() {
				if problem := recover(); problem != nil {
					p.panicked.Add(1)
				}
			}()
			p.ShutDownWithDrain()
			p.drained.Add(1)
		}()
	default:
		log.Fatalf("no step %q", s.Op)
	}
	return answer{}
}

// get gives what a worker that calls Get has got by now. Where Len counts an item that Get does not hand out, as
// controller-runtime's does, that worker goes on waiting until the next get.
func (p *player) get() answer {
	if p.Len() == 0 && !p.ShuttingDown() {
		return answer{Result: "nothing"}
	}
	if p.getter == nil {
		p.getter = make(chan answer, 1)
		go func(got chan<- answer) {
			item, priority, shutDown := p.take()
			if shutDown {
				item = "shut down"
			}
			got <- answer{Result: item, Priority: priority}
		}(p.getter)
	}
	synctest.Wait()
	select {
	case got := <-p.getter:
		p.getter = nil
		return got
	default:
		return answer{Result: "nothing"}
	}
}

// look adds to what a step gave what can be seen after it.
func (p *player) look(s step, seen answer) answer {
	seen.Len = p.Len()
	seen.ShuttingDown = p.ShuttingDown()
	seen.Drained = p.drained.Load()
	seen.Panicked = p.panicked.Load()
	seen.Requeues = p.NumRequeues(s.Item)
	seen.Depth = p.metrics.depth.value
	seen.Adds = p.metrics.adds.value
	seen.Retries = p.metrics.retries.value
	seen.Queued = p.metrics.queued.take()
	seen.Worked = p.metrics.worked.take()
	seen.Unfinished = p.metrics.unfinished.value
	seen.Longest = p.metrics.longest.value
	return seen
}
