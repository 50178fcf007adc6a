package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// watcher is one open watch.
type watcher struct {
	encoding *encoding
	conn     net.Conn
	mu       sync.Mutex // held for each write: events on demand come from another goroutine
	gone     chan struct{}
}

func (w *watcher) write(data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.conn.Write(data)
	return err
}

func (s *server) watch(conn net.Conn, reader *bufio.Reader, header http.Header, query url.Values) error {
	e := s.negotiate(header)
	streamed := isTrue(query.Get("sendInitialEvents"))
	if streamed && !s.watchList {
		message := "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
		return send(conn, http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, "Invalid", message))
	}
	version, _ := strconv.Atoi(query.Get("resourceVersion"))
	w := &watcher{encoding: e, conn: conn, gone: make(chan struct{})}
	go func() { // a client says nothing more during a watch: what ends this read is its going away
		_, _ = io.Copy(io.Discard, reader)
		close(w.gone)
	}()
	_, contentType := e.contentTypes()
	if err := w.write(begin(contentType)); err != nil {
		return err
	}
	if streamed {
		if err := s.streamList(w); err != nil {
			return err
		}
		version = listVersion
	}
	return s.follow(w, version, query)
}

func (s *server) streamList(w *watcher) error {
	if err := w.write(w.encoding.initial.block); err != nil {
		return err
	}
	end, err := w.encoding.bookmark(listVersion, true)
	if err != nil {
		return err
	}
	return w.write(end)
}

// follow sends what comes after that version once the gate is open, and bookmarks as long as the watch lasts.
func (s *server) follow(w *watcher, version int, query url.Values) error {
	end := time.NewTimer(lasting(query))
	defer end.Stop()
	select {
	case <-w.gone:
		return errClose
	case <-end.C:
		_ = w.write([]byte(endOfChunks))
		return errClose
	case <-s.opened():
	}
	seen := min(max(version-listVersion, 0), s.events)
	if err := w.write(w.encoding.changed.run(seen, s.events)); err != nil {
		return err
	}
	s.mu.Lock()
	s.watchers[w] = true
	s.cond.Broadcast()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	ticks := time.NewTicker(s.bookmark)
	defer ticks.Stop()
	for {
		select {
		case <-w.gone:
			return errClose
		case <-end.C:
			_ = w.write([]byte(endOfChunks))
			return errClose
		case <-ticks.C:
			s.mu.Lock()
			version := listVersion + s.events + s.version
			s.mu.Unlock()
			bookmark, err := w.encoding.bookmark(version, false)
			if err != nil {
				return err
			}
			if err := w.write(bookmark); err != nil {
				return err
			}
		}
	}
}

func lasting(query url.Values) time.Duration {
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return time.Hour
}
