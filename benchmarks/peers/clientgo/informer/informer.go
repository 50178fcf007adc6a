package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const nodeIndex = "node"

// source makes informers of one kind of client, and starts and stops those it made.
type source interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// newInformer makes an informer of pods with its index, as a program that cares for speed would.
func newInformer(o options) (source, cache.SharedIndexInformer, error) {
	config := &rest.Config{Host: o.server, QPS: -1} // no limit of its own: the default of 5 would be all that is measured
	var factory source
	var informer cache.SharedIndexInformer
	switch o.mode {
	case "json", "protobuf":
		config.ContentType = runtime.ContentTypeJSON
		config.AcceptContentTypes = runtime.ContentTypeJSON
		if o.mode == "protobuf" {
			config.ContentType = runtime.ContentTypeProtobuf
			config.AcceptContentTypes = runtime.ContentTypeProtobuf
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		typed := informers.NewSharedInformerFactory(client, 0)
		factory, informer = typed, typed.Core().V1().Pods().Informer()
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		untyped := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		factory, informer = untyped, untyped.ForResource(pods).Informer()
	default:
		return nil, nil, fmt.Errorf("no such mode: %s", o.mode)
	}
	if o.strip {
		if err := informer.SetTransform(stripManagedFields); err != nil {
			return nil, nil, err
		}
	}
	return factory, informer, informer.AddIndexers(cache.Indexers{nodeIndex: nodeOf})
}

func stripManagedFields(obj any) (any, error) {
	meta, ok := obj.(metav1.Object)
	if ok { // a tombstone is none
		meta.SetManagedFields(nil)
	}
	return obj, nil
}

func nodeOf(obj any) ([]string, error) {
	switch pod := obj.(type) {
	case *corev1.Pod:
		return []string{pod.Spec.NodeName}, nil
	case *unstructured.Unstructured:
		name, _, err := unstructured.NestedString(pod.Object, "spec", "nodeName")
		return []string{name}, err
	}
	return nil, fmt.Errorf("not a pod: %T", obj)
}

type queue = workqueue.TypedRateLimitingInterface[string]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

// handler adds keys to the queue and says when it was called often enough: for so many adds, then for so many updates.
type handler struct {
	queue  queue
	adds   int
	update int
	listed chan struct{}
	done   chan struct{}
}

func newHandler(q queue, adds, updates int) *handler {
	return &handler{q, adds, updates, make(chan struct{}), make(chan struct{})}
}

func (h *handler) enqueue(obj any) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err) // a pod has a name
	}
	h.queue.Add(key)
}

func (h *handler) OnAdd(obj any, _ bool) {
	h.enqueue(obj)
	if h.adds--; h.adds == 0 {
		close(h.listed)
	}
}

func (h *handler) OnUpdate(_, obj any) {
	h.enqueue(obj)
	if h.update--; h.update == 0 {
		close(h.done)
	}
}

func (h *handler) OnDelete(obj any) { panic("the server deletes nothing") }

func sentAt(obj any) string {
	return obj.(metav1.Object).GetAnnotations()["bench.pysedna.io/sent"]
}

// stopping makes a stop channel out of a context, for factories that take one.
func stopping() (<-chan struct{}, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	return ctx.Done(), cancel
}
