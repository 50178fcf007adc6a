package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Versions have eight digits, like the other values that differ from pod to pod: so one pod's bytes become another's by
// writing over them, in JSON and in protobuf alike, whose strings carry their lengths.
const (
	firstVersion = 10_000_000 // of pod number 0 as it is listed
	listVersion  = 20_000_000 // of the list; events follow it
)

const (
	listedTime  = "2026-05-04T08:00:05Z"
	changedTime = "2026-05-04T09:30:00Z"
)

// values are what is written into the template for pod number n. pods.py says the same.
func values(n, version int) map[string]string {
	return map[string]string{
		"{name}":      fmt.Sprintf("app-%02d-5d8f7c9b64-%06d", n%97, n),
		"{app}":       fmt.Sprintf("app-%02d", n%97),
		"{namespace}": fmt.Sprintf("team-%02d", n%20),
		"{uid}":       fmt.Sprintf("00000000-0000-4000-8000-%012x", n),
		"{owner_uid}": fmt.Sprintf("00000000-0000-4000-9000-%012x", n%97),
		"{node}":      fmt.Sprintf("node-%03d", n%250),
		"{ip}":        fmt.Sprintf("10.%d.%d.%d", 100+n/22500%150, 100+n/150%150, 100+n%150),
		"{version}":   fmt.Sprintf("%08d", version),
		"{sent}":      stamp(0),
	}
}

// stamp is a moment of the monotonic clock, in nanoseconds, always as long.
func stamp(nanoseconds int64) string { return fmt.Sprintf("%020d", nanoseconds) }

// examplePod is the template with a filler of the right length where a value goes.
func examplePod(template, changed string) (*corev1.Pod, map[string]string, error) {
	fillers := map[string]string{}
	pairs := []string{"{changed}", changed}
	for place, value := range values(0, firstVersion) {
		fillers[place] = (place + strings.Repeat("~", len(value)))[:len(value)]
		pairs = append(pairs, place, fillers[place])
	}
	// An API server keeps managedFields as they came, which is without spaces.
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(strings.NewReplacer(pairs...).Replace(template))); err != nil {
		return nil, nil, err
	}
	pod := &corev1.Pod{}
	err := json.Unmarshal(compact.Bytes(), pod)
	return pod, fillers, err
}

// pattern is one object's bytes, and where in them each value goes.
type pattern struct {
	bytes  []byte
	places map[string][]int
	size   int
}

func newPattern(encoded []byte, fillers map[string]string) pattern {
	p := pattern{bytes: encoded, places: map[string][]int{}, size: len(encoded)}
	for place, filler := range fillers {
		for at := 0; ; {
			found := bytes.Index(encoded[at:], []byte(filler))
			if found < 0 {
				break
			}
			p.places[place] = append(p.places[place], at+found)
			at += found + len(filler)
		}
	}
	return p
}

// write fills into, which holds a copy of the pattern, with the values of one pod.
func (p pattern) write(into []byte, filled map[string]string) {
	for place, value := range filled {
		for _, at := range p.places[place] {
			copy(into[at:], value)
		}
	}
}
