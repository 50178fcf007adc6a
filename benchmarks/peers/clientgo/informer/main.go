// Command informer runs a shared informer of client-go against the server of prebuilt bytes and says what it cost.
//
//	informer -server http://127.0.0.1:PORT -mode protobuf -pods 20000 -events 20000
//
// It has an index by spec.nodeName, and handlers that add the object's key to a work queue. It measures the list (from
// the start until the last handler was called), opens the server's gate, and measures the watch likewise; or, with
// -latency, how long events took from the server to the worker of that queue; or, with -idle, what it costs to have
// nothing to do. The result is one line of JSON on its standard output.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

type options struct {
	server   string
	mode     string
	pods     int
	events   int
	handlers int
	strip    bool
	latency  int
	interval time.Duration
	idle     time.Duration
	count    int
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "", "where the server is")
	flag.StringVar(&o.mode, "mode", "json", "json, protobuf (typed) or dynamic")
	flag.IntVar(&o.pods, "pods", 0, "how many pods the server lists")
	flag.IntVar(&o.events, "events", 0, "how many events it sends")
	flag.IntVar(&o.handlers, "handlers", 1, "how many handlers the informer has")
	flag.BoolVar(&o.strip, "strip", false, "drop managedFields by a transform")
	flag.IntVar(&o.latency, "latency", 0, "how many events to ask for, one at a time")
	flag.DurationVar(&o.interval, "interval", 5*time.Millisecond, "how long the server waits before each of those")
	flag.DurationVar(&o.idle, "idle", 0, "how long to have nothing to do")
	flag.IntVar(&o.count, "informers", 1, "how many informers have nothing to do")
	cores := flag.Int("cores", 0, "how many it may use; 0: all")
	flag.Parse()
	if *cores > 0 {
		runtime.GOMAXPROCS(*cores)
	}
	result, err := run(o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(o options) (any, error) {
	started, err := usage()
	if err != nil {
		return nil, err
	}
	switch {
	case o.latency > 0:
		return measureLatency(o)
	case o.idle > 0:
		return measureIdle(o)
	default:
		return measureThroughput(o, started)
	}
}
