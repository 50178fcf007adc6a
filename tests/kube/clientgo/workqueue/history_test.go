package workqueue

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

// history is what is to be played: one line on the standard input. All durations are nanoseconds.
type history struct {
	Queue   string  `json:"queue"` // whose: client-go or controller-runtime
	Limiter limiter `json:"limiter"`
	Steps   []step  `json:"steps"`
}

// step is one call on the queue, or the passing of time.
type step struct {
	Op       string        `json:"op"`
	Item     string        `json:"item"`
	For      time.Duration `json:"for"`
	Priority *int          `json:"priority"` // of an add; client-go knows none
}

// answer is what can be seen of the queue after a step.
type answer struct {
	// Result is the item that a get gave, "nothing" where it blocks, "shut down" where it said so; "panic" after any step.
	Result string `json:"result"`
	// Priority is that of the item that a get gave.
	Priority     int  `json:"priority"`
	Len          int  `json:"len"`
	ShuttingDown bool `json:"shutting_down"`
	// Drained and Panicked count the calls of ShutDownWithDrain that have returned and those that could not.
	Drained  int64 `json:"drained"`
	Panicked int64 `json:"panicked"`
	// Requeues is the NumRequeues of the step's item.
	Requeues int     `json:"requeues"`
	Depth    float64 `json:"depth"`
	Adds     float64 `json:"adds"`
	Retries  float64 `json:"retries"`
	// Queued and Worked are the seconds that this step reported to the two histograms.
	Queued     []float64 `json:"queued"`
	Worked     []float64 `json:"worked"`
	Unfinished float64   `json:"unfinished"`
	Longest    float64   `json:"longest"`
}

// limiter describes a rate limiter. It reads the bubble's clock, as rate.Limiter takes none.
type limiter struct {
	Kind     string        `json:"kind"`
	Base     time.Duration `json:"base"`
	Fast     time.Duration `json:"fast"`
	Slow     time.Duration `json:"slow"`
	Max      time.Duration `json:"max"`
	Attempts int           `json:"attempts"`
	QPS      float64       `json:"qps"`
	Burst    int           `json:"burst"`
	Of       []limiter     `json:"of"`
}

func (l limiter) build() workqueue.TypedRateLimiter[string] {
	switch l.Kind {
	case "default":
		return workqueue.DefaultTypedControllerRateLimiter[string]()
	case "exponential":
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](l.Base, l.Max)
	case "fast slow":
		return workqueue.NewTypedItemFastSlowRateLimiter[string](l.Fast, l.Slow, l.Attempts)
	case "bucket":
		return &workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(rate.Limit(l.QPS), l.Burst)}
	case "max wait":
		return workqueue.NewTypedWithMaxWaitRateLimiter(l.Of[0].build(), l.Max)
	case "max of":
		var all []workqueue.TypedRateLimiter[string]
		for _, one := range l.Of {
			all = append(all, one.build())
		}
		return workqueue.NewTypedMaxOfRateLimiter(all...)
	}
	panic(fmt.Sprintf("no limiter of kind %q", l.Kind))
}
