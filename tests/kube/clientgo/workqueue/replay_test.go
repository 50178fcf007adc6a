// Package workqueue plays histories on client-go's typed rate limiting queue: JSON lines on the standard input, and for
// each of them the answers of its steps as one JSON line on the standard output.
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
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
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

// player is a queue with its clock and what it reports.
type player struct {
	workqueue.TypedRateLimitingInterface[string]
	clock   *clocktesting.FakeClock
	metrics metrics
	drained atomic.Int64
}

// play goes through a history in a bubble of its own, and leaves no goroutine behind in it.
func play(h history) []answer {
	p := &player{clock: clocktesting.NewFakeClock(time.Now())}
	// As the rate limiting queue makes them itself; but the innermost one is needed at the end.
	basic := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{
		Name: "replay", Clock: p.clock, MetricsProvider: &p.metrics,
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{
		Name: "replay", Clock: p.clock, MetricsProvider: &p.metrics, Queue: basic,
	})
	p.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(
		h.Limiter.build(), workqueue.TypedRateLimitingQueueConfig[string]{DelayingQueue: delaying})
	synctest.Wait()

	answers := []answer{}
	for _, each := range h.Steps {
		result := p.do(each)
		synctest.Wait()
		answers = append(answers, p.look(each, result))
	}

	p.ShutDown()     // ends the delaying queue's loop
	basic.ShutDown() // ends every drain that still waits, which the one before does once only
	return answers
}

// do takes one step, which never blocks. What a get gives is the result.
func (p *player) do(s step) string {
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
		time.Sleep(s.For) // the bubble's clock, for rate.Limiter: passes at once, as everybody else is blocked
		p.clock.Step(s.For)
	case "shut_down":
		p.ShutDown()
	case "shut_down_with_drain":
		go func() {
			p.ShutDownWithDrain()
			p.drained.Add(1)
		}()
	default:
		panic(fmt.Sprintf("no step %q", s.Op))
	}
	return ""
}

// get asks the queue only if it can answer at once: nobody else takes from it.
func (p *player) get() string {
	if p.Len() == 0 && !p.ShuttingDown() {
		return "nothing"
	}
	item, shutDown := p.Get()
	if shutDown {
		return "shut down"
	}
	return item
}

func (p *player) look(s step, result string) answer {
	return answer{
		Result:       result,
		Len:          p.Len(),
		ShuttingDown: p.ShuttingDown(),
		Drained:      p.drained.Load(),
		Requeues:     p.NumRequeues(s.Item),
		Depth:        p.metrics.depth.value,
		Adds:         p.metrics.adds.value,
		Retries:      p.metrics.retries.value,
		Queued:       p.metrics.queued.take(),
		Worked:       p.metrics.worked.take(),
		Unfinished:   p.metrics.unfinished.value,
		Longest:      p.metrics.longest.value,
	}
}
