package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server speaks HTTP/1.1 by itself, for a handler of net/http could not send chunks that were framed before.
type server struct {
	encodings []*encoding
	pods      int
	events    int
	watchList bool
	bookmark  time.Duration

	mu       sync.Mutex
	cond     sync.Cond     // told when somebody begins to watch
	gate     chan struct{} // closed while watches are sent their events
	version  int           // how many events were sent on demand
	watchers map[*watcher]bool
}

var errClose = errors.New("the connection ends with this answer")

func (s *server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.serve(conn)
	}
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err = io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		if err = s.answer(conn, reader, request); err != nil || request.Close {
			return
		}
	}
}

func (s *server) answer(conn net.Conn, reader *bufio.Reader, request *http.Request) error {
	query := request.URL.Query()
	switch path := request.URL.Path; {
	case path == "/api/v1/pods" && isTrue(query.Get("watch")):
		return s.watch(conn, reader, request.Header, query)
	case path == "/api/v1/pods":
		return s.list(conn, request.Header, query)
	case strings.HasPrefix(path, "/bench/"):
		return s.control(conn, path, query)
	}
	if document, ok := discovery[request.URL.Path]; ok {
		return send(conn, http.StatusOK, []byte(document))
	}
	return send(conn, http.StatusNotFound, status(http.StatusNotFound, "NotFound", request.URL.Path+" not found"))
}

func isTrue(text string) bool { return text == "1" || strings.EqualFold(text, "true") }

func send(conn net.Conn, code int, body []byte) error {
	head := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		code, http.StatusText(code), len(body))
	_, err := conn.Write(append(head, body...))
	return err
}

func status(code int, reason metav1.StatusReason, message string) []byte {
	encoded, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		panic(err) // strings and a number
	}
	return encoded
}

func begin(contentType string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", contentType)
}

// negotiate takes the format that stands first in Accept; JSON if none of ours does.
func (s *server) negotiate(header http.Header) *encoding {
	for accepted := range strings.SplitSeq(header.Get("Accept"), ",") {
		media, parameters, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		for _, each := range s.encodings {
			if list, _ := each.contentTypes(); list == media && !strings.Contains(parameters, "as=") {
				return each
			}
		}
	}
	return s.encodings[0]
}

func (s *server) list(conn net.Conn, header http.Header, query url.Values) error {
	e := s.negotiate(header)
	from, _ := strconv.Atoi(query.Get("continue"))
	to := s.pods
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(listVersion)}
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < s.pods {
		to = from + limit
		left := int64(s.pods - to)
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(to), &left
	}
	if from >= to {
		return send(conn, http.StatusBadRequest, status(http.StatusBadRequest, "BadRequest", "no such continue token"))
	}
	contentType, _ := e.contentTypes()
	buffers := append(net.Buffers{begin(contentType)}, e.page(meta, from, to)...)
	_, err := buffers.WriteTo(conn)
	return err
}

// control is for the benchmark: /bench/gate?open=true, /bench/emit?count=100&interval=5ms, /bench/usage.
func (s *server) control(conn net.Conn, path string, query url.Values) error {
	switch path {
	case "/bench/gate":
		s.setGate(isTrue(query.Get("open")))
	case "/bench/emit":
		count, _ := strconv.Atoi(query.Get("count"))
		interval, err := time.ParseDuration(query.Get("interval"))
		if err != nil {
			return send(conn, http.StatusBadRequest, []byte(err.Error()))
		}
		s.emit(count, interval)
	case "/bench/usage":
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		seconds := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
		return send(conn, http.StatusOK, fmt.Appendf(nil, `{"cpu":%f}`, seconds))
	default:
		return send(conn, http.StatusNotFound, []byte("no such control"))
	}
	return send(conn, http.StatusOK, []byte("{}"))
}

func (s *server) setGate(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gate:
		if !open {
			s.gate = make(chan struct{})
		}
	default:
		if open {
			close(s.gate)
		}
	}
}

// opened is closed when the gate is open.
func (s *server) opened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate
}

// emit sends events one at a time, each stamped with the moment before it is written, to those who watch; it waits until
// somebody does.
func (s *server) emit(count int, interval time.Duration) {
	for range count {
		time.Sleep(interval/2 + rand.N(interval+1)) // never in step with anybody's ticks
		s.mu.Lock()
		for len(s.watchers) == 0 {
			s.cond.Wait()
		}
		s.version++
		number := s.version
		watchers := make([]*watcher, 0, len(s.watchers))
		for w := range s.watchers {
			watchers = append(watchers, w)
		}
		s.mu.Unlock()
		for _, w := range watchers {
			shape := w.encoding.changed
			piece := bytes.Clone(shape.run(s.events, s.events+1))
			filled := values(number%s.pods, listVersion+s.events+number)
			filled["{sent}"] = stamp(monotonic())
			shape.pattern.write(piece[shape.at:], filled)
			w.write(piece)
		}
	}
}

// monotonic is the clock that other processes of this machine read too.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Linux has this clock
	}
	return now.Nano()
}
