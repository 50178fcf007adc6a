// Command informer plays sessions to client-go's shared informer and tells what its handler was shown.
//
// It reads one session a line from standard input, as JSON, runs them side by side, and writes one line of JSON for
// each as it ends. A session ends when its marker object was added, or when its time is over.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"os"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func main() {
	log.SetFlags(0)
	survive := flag.Bool("survive-panics", false, "recover from panics, as programs do that clear ReallyCrash")
	verbose := flag.Bool("v", false, "write client-go's log to standard error")
	parallel := flag.Int("parallel", 32, "how many sessions are played at once")
	flag.Parse()
	utilruntime.ReallyCrash = !*survive
	if !*verbose {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}

	var running sync.WaitGroup
	var writing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	free := make(chan struct{}, *parallel)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var session Session
		if err := json.Unmarshal(lines.Bytes(), &session); err != nil {
			log.Fatalf("not a session: %v: %s", err, lines.Text())
		}
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			result, err := session.play(context.Background())
			if err != nil {
				log.Fatalf("session %s: %v", session.ID, err)
			}
			writing.Lock()
			defer writing.Unlock()
			if err := out.Encode(result); err != nil {
				log.Fatal(err)
			}
		})
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
	running.Wait()
}
