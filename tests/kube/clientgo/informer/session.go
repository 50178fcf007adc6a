package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Session is one server to follow until it shows the marker.
type Session struct {
	ID        string `json:"id"`
	URL       string `json:"url"`
	Marker    string `json:"marker"`    // the name of the object that is added last
	WatchList bool   `json:"watchList"` // whether the initial list may be streamed
	Seconds   int    `json:"seconds"`   // how long to wait for the marker
	// What follows is for single behaviours.
	Late         bool   `json:"late"`         // ask the factory for the informer after it was started
	PanicOn      string `json:"panicOn"`      // the handler panics when this object is added
	IndexPanicOn string `json:"indexPanicOn"` // an index function panics on this object
	Hold         bool   `json:"hold"`         // the handler waits in its first call until the cache has the marker
	ResyncMillis int    `json:"resyncMillis"` // the period the handler asks for; the informer itself has none
	LingerMillis int    `json:"lingerMillis"` // how long to stay after the marker
}

// Event is one call of the handler.
type Event struct {
	Event   string `json:"event"`
	Key     string `json:"key"`
	UID     string `json:"uid"`
	RV      string `json:"rv"`
	OldUID  string `json:"oldUid,omitempty"`
	OldRV   string `json:"oldRv,omitempty"`
	Unknown bool   `json:"unknown,omitempty"` // a tombstone
	Initial bool   `json:"initial,omitempty"`
}

// Cached is an object of the final cache.
type Cached struct {
	UID  string `json:"uid"`
	RV   string `json:"rv"`
	Data string `json:"data"`
}

// Result is what came of a session.
type Result struct {
	ID            string            `json:"id"`
	Ended         bool              `json:"ended"`         // the marker was seen
	Synced        bool              `json:"synced"`        // the informer's HasSynced
	HandlerSynced bool              `json:"handlerSynced"` // the registration's HasSynced
	History       []Event           `json:"history"`
	Cache         map[string]Cached `json:"cache"`
}

func (s *Session) play(ctx context.Context) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.Seconds)*time.Second)
	defer cancel()
	// Without a limit of its own: the default of five requests a second would be what is measured.
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.URL, QPS: -1})
	if err != nil {
		return nil, err
	}
	informer, run := s.informer(client)
	recorder := newRecorder(ctx, s, informer.GetStore())
	registration, err := informer.AddEventHandlerWithResyncPeriod(
		recorder, time.Duration(s.ResyncMillis)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })

	result := &Result{ID: s.ID}
	select {
	case <-recorder.marked:
		result.Ended = true
		select {
		case <-time.After(time.Duration(s.LingerMillis) * time.Millisecond):
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	result.Synced = informer.HasSynced()
	result.HandlerSynced = registration.HasSynced()
	result.History = recorder.events()
	result.Cache = cached(informer.GetStore())
	cancel()
	running.Wait()
	return result, nil
}

// informer gives the informer and what runs it.
func (s *Session) informer(client dynamic.Interface) (cache.SharedIndexInformer, func(context.Context)) {
	if s.Late {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
		done := make(chan struct{})
		factory.Start(done)
		return factory.ForResource(configMaps).Informer(), func(ctx context.Context) {
			<-ctx.Done()
			close(done)
			factory.Shutdown()
		}
	}
	indexers := cache.Indexers{}
	if s.IndexPanicOn != "" {
		indexers["panics"] = s.panickingIndex
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		source(client, s.WatchList), &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{Indexers: indexers})
	return informer, informer.RunWithContext
}

func (s *Session) panickingIndex(obj any) ([]string, error) {
	if obj.(*unstructured.Unstructured).GetName() == s.IndexPanicOn {
		panic("index function: " + s.IndexPanicOn)
	}
	return nil, nil
}

func cached(store cache.Store) map[string]Cached {
	objects := map[string]Cached{}
	for _, key := range store.ListKeys() {
		obj, exists, err := store.GetByKey(key)
		if err != nil || !exists {
			continue
		}
		object := obj.(*unstructured.Unstructured)
		data, _, _ := unstructured.NestedString(object.Object, "data", "n")
		objects[key] = Cached{UID: string(object.GetUID()), RV: object.GetResourceVersion(), Data: data}
	}
	return objects
}
