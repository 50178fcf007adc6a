package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// recorder is a handler that keeps its calls. marked is closed once the session's marker was added.
type recorder struct {
	ctx     context.Context
	session *Session
	store   cache.Store
	marked  chan struct{}
	hold    sync.Once
	mark    sync.Once

	lock    sync.Mutex
	history []Event
}

func newRecorder(ctx context.Context, session *Session, store cache.Store) *recorder {
	return &recorder{ctx: ctx, session: session, store: store, marked: make(chan struct{}), history: []Event{}}
}

func (r *recorder) OnAdd(obj any, initial bool) {
	object := obj.(*unstructured.Unstructured)
	event := named("add", object)
	event.Initial = initial
	r.keep(event)
	switch object.GetName() {
	case r.session.PanicOn:
		panic("handler: " + r.session.PanicOn)
	case r.session.Marker:
		r.mark.Do(func() { close(r.marked) })
	}
}

func (r *recorder) OnUpdate(before, obj any) {
	event := named("update", obj.(*unstructured.Unstructured))
	old := before.(*unstructured.Unstructured)
	event.OldUID, event.OldRV = string(old.GetUID()), old.GetResourceVersion()
	r.keep(event)
}

func (r *recorder) OnDelete(obj any) {
	unknown := false
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, unknown = tombstone.Obj, true
	}
	event := named("delete", obj.(*unstructured.Unstructured))
	event.Unknown = unknown
	r.keep(event)
}

func named(what string, object *unstructured.Unstructured) Event {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		key = err.Error()
	}
	return Event{Event: what, Key: key, UID: string(object.GetUID()), RV: object.GetResourceVersion()}
}

func (r *recorder) keep(event Event) {
	if r.session.Hold {
		r.hold.Do(r.waitForMarker)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.history = append(r.history, event)
}

// waitForMarker returns when the cache has what is added last, so that everything else waits for the handler.
func (r *recorder) waitForMarker() {
	for r.ctx.Err() == nil && !slices.Contains(r.store.ListKeys(), namespace+"/"+r.session.Marker) {
		time.Sleep(time.Millisecond)
	}
}

func (r *recorder) events() []Event {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.history)
}
