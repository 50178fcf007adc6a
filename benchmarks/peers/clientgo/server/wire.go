package main

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const endOfChunks = "0\r\n\r\n"

func chunk(body []byte) []byte {
	return append(append(fmt.Appendf(nil, "%x\r\n", len(body)), body...), "\r\n"...)
}

// chunks are pieces of one shape, one after the other in one block of memory, each framed as the chunk of HTTP that an
// API server makes of it: one for each item of a list, one for each event. A run of them goes out in one write.
type chunks struct {
	block   []byte
	size    int // of a piece, without its frame
	framed  int // of a piece with its frame
	pattern pattern
	at      int // where the pattern begins in a framed piece
}

// newChunks makes n chunks of the pattern between prefix and suffix; fill says what is written into each.
func newChunks(prefix []byte, p pattern, suffix []byte, n int, fill func(int) map[string]string) chunks {
	body := append(append(append([]byte(nil), prefix...), p.bytes...), suffix...)
	piece := chunk(body)
	at := len(piece) - len("\r\n") - len(body) + len(prefix)
	c := chunks{block: bytes.Repeat(piece, n), size: len(body), framed: len(piece), pattern: p, at: at}
	for i := range n {
		p.write(c.block[i*c.framed+at:], fill(i))
	}
	return c
}

// run is the chunks from i up to j, as they are sent.
func (c chunks) run(i, j int) []byte { return c.block[i*c.framed : j*c.framed] }

// body is what chunk i carries.
func (c chunks) body(i int) []byte {
	end := (i+1)*c.framed - len("\r\n")
	return c.block[end-c.size : end]
}

// encoding is everything that is said in one format.
type encoding struct {
	format
	listed  chunks // the items of a list, each with what stands between it and the next one
	changed chunks // MODIFIED events, and one more: the shape of those that are sent on demand
	initial chunks // the ADDED events of a streamed list
}

// prepare makes all bytes of one format.
func prepare(f format, template string, pods, events int, watchList bool) (*encoding, error) {
	listed, fillers, err := examplePod(template, listedTime)
	if err != nil {
		return nil, err
	}
	changed, _, err := examplePod(template, changedTime)
	if err != nil {
		return nil, err
	}
	fillListed := func(i int) map[string]string { return values(i, firstVersion+i) }
	fillChanged := func(i int) map[string]string { return values(i%pods, listVersion+1+i) }

	item, err := f.item(listed)
	if err != nil {
		return nil, err
	}
	event, err := f.event("MODIFIED", changed)
	if err != nil {
		return nil, err
	}
	before, after := f.itemFrame(len(item))
	e := &encoding{
		format:  f,
		listed:  newChunks(before, newPattern(item, fillers), after, pods, fillListed),
		changed: newChunks(nil, newPattern(event, fillers), nil, events+1, fillChanged),
	}
	if watchList {
		added, err := f.event("ADDED", listed)
		if err != nil {
			return nil, err
		}
		e.initial = newChunks(nil, newPattern(added, fillers), nil, pods, fillListed)
	}
	return e, nil
}

// page is the body of a list with the items from i up to j, chunk by chunk.
func (e *encoding) page(meta metav1.ListMeta, i, j int) [][]byte {
	_, separator := e.itemFrame(0)
	last := e.listed.body(j - 1)
	last = last[:len(last)-len(separator)]
	head, tail := e.listFrame(meta, (j-i)*e.listed.size)
	return [][]byte{chunk(head), e.listed.run(i, j-1), chunk(last), chunk(tail), []byte(endOfChunks)}
}

// bookmark is the event that says how far a watch has come; initialEnd, that the list it began with is complete.
func (e *encoding) bookmark(version int, initialEnd bool) ([]byte, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}}
	if initialEnd {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	event, err := e.event("BOOKMARK", pod)
	return chunk(event), err
}
