// Command server plays the part of an API server that has nothing to do but write: it answers lists and watches of pods
// with bytes that were made before the first request, so that what is measured is the reader.
//
//	server -template ../../pod.json -pods 20000 -events 20000
//
// It says where it is in one line of JSON on its standard output, and ends when its standard input does.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func main() {
	template := flag.String("template", "", "the pod that all pods are made of")
	pods := flag.Int("pods", 20000, "how many pods are listed")
	events := flag.Int("events", 20000, "how many MODIFIED events follow once the gate is open")
	watchList := flag.Bool("watch-list", false, "stream the list to those who ask for it (sendInitialEvents)")
	bookmark := flag.Duration("bookmark", time.Minute, "how often a quiet watch is sent a bookmark")
	flag.Parse()
	if err := run(*template, *pods, *events, *watchList, *bookmark); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(template string, pods, events int, watchList bool, bookmark time.Duration) error {
	text, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	if pods < 1 || events < 0 {
		return fmt.Errorf("there must be pods, not %d, and %d events cannot be sent", pods, events)
	}
	s := &server{
		pods: pods, events: events, watchList: watchList, bookmark: bookmark,
		gate: make(chan struct{}), watchers: map[*watcher]bool{},
	}
	s.cond.L = &s.mu
	ready := map[string]any{}
	for _, each := range []format{jsonFormat{}, protobufFormat{}} {
		made, err := prepare(each, string(text), pods, events, watchList)
		if err != nil {
			return err
		}
		s.encodings = append(s.encodings, made)
		ready[each.name()] = made.listed.size
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ready["url"] = "http://" + listener.Addr().String()
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	go s.accept(listener)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
