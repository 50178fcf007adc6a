package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// usage is the CPU time of this process so far, of all its threads.
func usage() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// peakMemory is the largest resident set since the last call, in bytes.
func peakMemory() (int64, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer status.Close()
	var kilobytes int64
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		if rest, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
				return 0, err
			}
		}
	}
	// Where the kernel does not let it begin anew, the next peak is that of the whole life.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return kilobytes << 10, lines.Err()
}

// monotonic is the clock that other processes of this machine read too, in nanoseconds.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Linux has this clock
	}
	return now.Nano()
}

// ask calls one of the server's controls.
func ask(server, control string) error {
	answer, err := http.Post(server+control, "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", control, answer.Status)
	}
	return nil
}

// phase is what a list or a watch cost.
type phase struct {
	Objects int     `json:"objects"`
	Wall    float64 `json:"wall"` // seconds
	CPU     float64 `json:"cpu"`  // seconds, of all threads
	Peak    int64   `json:"peak"` // bytes, the largest resident set
}

// stopwatch measures one phase.
type stopwatch struct {
	began time.Time
	used  time.Duration
}

func startWatch() (stopwatch, error) {
	used, err := usage()
	return stopwatch{time.Now(), used}, err
}

func (s stopwatch) stop(objects int) (phase, error) {
	wall := time.Since(s.began)
	used, err := usage()
	if err != nil {
		return phase{}, err
	}
	peak, err := peakMemory()
	return phase{objects, wall.Seconds(), (used - s.used).Seconds(), peak}, err
}
