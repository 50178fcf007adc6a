package main

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"
)

type throughput struct {
	Startup    float64 `json:"startup_cpu"` // seconds of CPU until the informer began
	List       phase   `json:"list"`
	Watch      phase   `json:"watch"`
	Heap       uint64  `json:"heap"` // bytes in use after a collection, at the end
	GoMaxProcs int     `json:"gomaxprocs"`
}

func measureThroughput(o options, started time.Duration) (*throughput, error) {
	factory, informer, err := newInformer(o)
	if err != nil {
		return nil, err
	}
	handlers := make([]*handler, o.handlers)
	for i := range handlers {
		q := newQueue() // one each, as so many controllers have
		defer q.ShutDown()
		handlers[i] = newHandler(q, o.pods, o.events)
		if _, err := informer.AddEventHandler(handlers[i]); err != nil {
			return nil, err
		}
	}
	result := &throughput{Startup: started.Seconds(), GoMaxProcs: runtime.GOMAXPROCS(0)}
	stop, cancel := stopping()
	defer factory.Shutdown()
	defer cancel()

	clock, err := startWatch()
	if err != nil {
		return nil, err
	}
	factory.Start(stop)
	for _, h := range handlers {
		<-h.listed
	}
	if result.List, err = clock.stop(o.pods); err != nil {
		return nil, err
	}
	if o.events > 0 {
		if clock, err = startWatch(); err != nil {
			return nil, err
		}
		if err := ask(o.server, "/bench/gate?open=true"); err != nil {
			return nil, err
		}
		for _, h := range handlers {
			<-h.done
		}
		if result.Watch, err = clock.stop(o.events); err != nil {
			return nil, err
		}
	}
	held := len(informer.GetStore().ListKeys())
	for _, h := range handlers {
		if queued := h.queue.Len(); held != o.pods || queued != o.pods {
			return nil, fmt.Errorf("the cache holds %d pods and a queue %d keys, not %d", held, queued, o.pods)
		}
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	result.Heap = memory.HeapAlloc
	runtime.KeepAlive(informer)
	return result, nil
}

type delays struct {
	Seconds []float64 `json:"delays"`
}

// measureLatency has one worker that takes keys from the queue and looks the object up, as a reconciler does first.
func measureLatency(o options) (*delays, error) {
	factory, informer, err := newInformer(o)
	if err != nil {
		return nil, err
	}
	q := newQueue()
	h := newHandler(q, o.pods, 0)
	if _, err := informer.AddEventHandler(h); err != nil {
		return nil, err
	}
	stop, cancel := stopping()
	defer factory.Shutdown()
	defer cancel()
	factory.Start(stop)
	<-h.listed
	for range o.pods {
		key, _ := q.Get()
		q.Done(key)
	}
	found := make(chan delays, 1)
	go func() { found <- work(q, informer.GetStore(), o.latency) }()
	if err := ask(o.server, "/bench/gate?open=true"); err != nil {
		return nil, err
	}
	if err := ask(o.server, fmt.Sprintf("/bench/emit?count=%d&interval=%s", o.latency, o.interval)); err != nil {
		return nil, err
	}
	result := <-found
	q.ShutDown()
	return &result, nil
}

func work(q queue, store cache.Store, count int) delays {
	var found delays
	for range count {
		key, _ := q.Get()
		now := monotonic()
		obj, exists, err := store.GetByKey(key)
		if err != nil || !exists {
			panic(key + " is not in the cache")
		}
		sent, err := strconv.ParseInt(sentAt(obj), 10, 64)
		if err != nil {
			panic(err)
		}
		found.Seconds = append(found.Seconds, time.Duration(now-sent).Seconds())
		q.Done(key)
	}
	return found
}

type idleness struct {
	CPU  float64 `json:"cpu"`
	Wall float64 `json:"wall"`
	Peak int64   `json:"peak"`
}

func measureIdle(o options) (*idleness, error) {
	stop, cancel := stopping()
	defer cancel()
	for range o.count {
		factory, informer, err := newInformer(o)
		if err != nil {
			return nil, err
		}
		factory.Start(stop)
		if !cache.WaitForCacheSync(stop, informer.HasSynced) {
			return nil, fmt.Errorf("the informer did not sync")
		}
	}
	if err := ask(o.server, "/bench/gate?open=true"); err != nil {
		return nil, err
	}
	time.Sleep(time.Second) // what came with the start is not idleness
	clock, err := startWatch()
	if err != nil {
		return nil, err
	}
	time.Sleep(o.idle)
	spent, err := clock.stop(0)
	return &idleness{spent.CPU, spent.Wall, spent.Peak}, err
}
