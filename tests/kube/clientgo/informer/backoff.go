package main

import (
	"time"
	_ "unsafe" // for go:linkname
)

// A shared informer makes its reflector itself and hands it no back-off (ReflectorOptions.Backoff has no way through
// SharedIndexInformerOptions as of v0.37), so the defaults are shortened where they are kept: what is played is the
// shared informer as it is, and only its patience differs.

//go:linkname defaultBackoffInit k8s.io/client-go/tools/cache.defaultBackoffInit
var defaultBackoffInit time.Duration

//go:linkname defaultBackoffMax k8s.io/client-go/tools/cache.defaultBackoffMax
var defaultBackoffMax time.Duration

func init() {
	defaultBackoffInit = time.Millisecond
	defaultBackoffMax = 10 * time.Millisecond
}
