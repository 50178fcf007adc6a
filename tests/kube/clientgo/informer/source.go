package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

const namespace = "ns"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// source lists and watches the session's objects as the dynamic informer does.
func source(client dynamic.Interface, watchList bool) cache.ListerWatcher {
	resource := client.Resource(configMaps).Namespace(namespace)
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, options)
		},
	}
	if watchList {
		return both
	}
	return withoutWatchList{both}
}

// withoutWatchList says of itself what keeps a reflector from streaming its list, whatever the feature gate says.
type withoutWatchList struct{ *cache.ListWatch }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }
