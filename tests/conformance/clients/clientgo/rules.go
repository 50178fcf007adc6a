package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

var rules = []struct {
	name string
	rule func(suite)
}{
	{"creates names and objects, and knows AlreadyExists and NotFound", creates},
	{"an informer syncs by a streaming list, and its lister follows", informs},
	{"an old version conflicts, and RetryOnConflict gets through", retries},
	{"merge patches, and strategic merge patches", patches},
	{"lists by labels, chunk by chunk", lists},
	{"a watch goes on from a version to the deletion", watches},
	{"deletes under preconditions", deletes},
	{"the dynamic client handles a custom resource and its status", handlesCustomResources},
	{"a leader is elected and lets go of its lease", elects},
}

var (
	creation = metav1.CreateOptions{}
	reading  = metav1.GetOptions{}
	updating = metav1.UpdateOptions{}
	patching = metav1.PatchOptions{}
	deletion = metav1.DeleteOptions{}
)

func (s suite) configMaps() typedcorev1.ConfigMapInterface {
	return s.typed.CoreV1().ConfigMaps(s.namespace)
}

func configMap(name string, labels ...string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		made.Labels[label] = "yes"
	}
	return made
}

func creates(s suite) {
	made := must(s.configMaps().Create(s, configMap("twice"), creation))
	require(made.UID != "" && made.ResourceVersion != "", "no uid or no version: %v", made.ObjectMeta)
	nameless := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}
	named := must(s.configMaps().Create(s, nameless, creation))
	require(strings.HasPrefix(named.Name, "some-") && len(named.Name) > len("some-"), "named %q", named.Name)
	_, err := s.configMaps().Create(s, configMap("twice"), creation)
	fails(apierrors.IsAlreadyExists, err)
	_, err = s.configMaps().Get(s, "none", reading)
	fails(apierrors.IsNotFound, err)
}

func informs(s suite) {
	ctx, stop := context.WithCancel(s)
	must(s.configMaps().Create(s, configMap("before", "informed"), creation))
	factory := informers.NewSharedInformerFactoryWithOptions(s.typed, 0, informers.WithNamespace(s.namespace))
	informer := factory.Core().V1().ConfigMaps()
	lister := informer.Lister().ConfigMaps(s.namespace)
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer stop()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		require(synced, "%v did not sync", kind)
	}
	require(s.streamed.Load() > 0, "the server granted no streaming list")
	must(lister.Get("before"))
	must(s.configMaps().Create(s, configMap("after", "informed"), creation))
	succeeds(s.configMaps().Delete(s, "before", deletion))
	follows := func(context.Context) (bool, error) {
		found, err := lister.List(labels.SelectorFromSet(labels.Set{"informed": "yes"}))
		return len(found) == 1 && found[0].Name == "after", err
	}
	succeeds(wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, follows))
}

func retries(s suite) {
	old := must(s.configMaps().Create(s, configMap("contended"), creation))
	newer := old.DeepCopy()
	newer.Data = map[string]string{"theirs": "1"}
	must(s.configMaps().Update(s, newer, updating))
	_, err := s.configMaps().Update(s, old, updating)
	fails(apierrors.IsConflict, err)
	attempts, current := 0, old
	succeeds(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if attempts++; attempts > 1 {
			current = must(s.configMaps().Get(s, "contended", reading))
		}
		changed := current.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, "ours", "2")
		_, err := s.configMaps().Update(s, changed, updating)
		return err
	}))
	found := must(s.configMaps().Get(s, "contended", reading))
	require(attempts == 2 && found.Data["theirs"] == "1" && found.Annotations["ours"] == "2", "%d: %v", attempts, found)
}

func patches(s suite) {
	original := configMap("patched")
	original.Data = map[string]string{"gone": "1", "kept": "2"}
	must(s.configMaps().Create(s, original, creation))
	patch := []byte(`{"data": {"gone": null, "new": "3"}}`)
	patched := must(s.configMaps().Patch(s, "patched", types.MergePatchType, patch, patching))
	require(fmt.Sprint(patched.Data) == "map[kept:2 new:3]", "data: %v", patched.Data)

	selected := map[string]string{"app": "d"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}}
	template.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}, {Name: "side", Image: "side:1"}}
	spec := appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template}
	deployments := s.typed.AppsV1().Deployments(s.namespace)
	must(deployments.Create(s, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: spec}, creation))
	patch = []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:2"}]}}}}`)
	deployment := must(deployments.Patch(s, "d", types.StrategicMergePatchType, patch, patching))
	images := map[string]string{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		images[container.Name] = container.Image
	}
	require(fmt.Sprint(images) == "map[main:main:1 side:side:2]", "images: %v", images)
	require(deployment.Generation == 2, "generation %d", deployment.Generation)
	succeeds(deployments.Delete(s, "d", deletion))
}

func lists(s suite) {
	for number := range 5 {
		must(s.configMaps().Create(s, configMap(fmt.Sprint("listed-", number), "listed"), creation))
	}
	options := metav1.ListOptions{LabelSelector: "listed=yes", Limit: 2}
	var chunks []int
	for {
		chunk := must(s.configMaps().List(s, options))
		chunks = append(chunks, len(chunk.Items))
		if options.Continue = chunk.Continue; options.Continue == "" {
			break
		}
	}
	require(fmt.Sprint(chunks) == "[2 2 1]", "chunks of %v", chunks)
}

func watches(s suite) {
	must(s.configMaps().Create(s, configMap("watched", "watched"), creation))
	options := metav1.ListOptions{LabelSelector: "watched=yes"}
	options.ResourceVersion = must(s.configMaps().List(s, options)).ResourceVersion
	patch := []byte(`{"data": {"a": "b"}}`)
	must(s.configMaps().Patch(s, "watched", types.MergePatchType, patch, patching))
	stream := must(s.configMaps().Watch(s, options))
	defer stream.Stop()
	succeeds(s.configMaps().Delete(s, "watched", deletion))
	for _, expected := range []watch.EventType{watch.Modified, watch.Deleted} {
		event := <-stream.ResultChan()
		object, ok := event.Object.(*corev1.ConfigMap)
		require(ok && event.Type == expected && object.Data["a"] == "b", "not %s: %v", expected, event)
	}
}

func deletes(s suite) {
	made := must(s.configMaps().Create(s, configMap("guarded"), creation))
	other, old := types.UID("another"), "1"
	fails(apierrors.IsConflict, s.configMaps().Delete(s, "guarded", *metav1.NewPreconditionDeleteOptions(string(other))))
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old}}
	fails(apierrors.IsConflict, s.configMaps().Delete(s, "guarded", options))
	options.Preconditions = &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}
	succeeds(s.configMaps().Delete(s, "guarded", options))
	fails(apierrors.IsNotFound, s.configMaps().Delete(s, "guarded", options))
}

func handlesCustomResources(s suite) {
	kind := schema.GroupVersionResource{Group: "sedna.io", Version: "v1alpha1", Resource: "models"}
	models := s.dynamic.Resource(kind).Namespace(s.namespace)
	model := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sedna.io/v1alpha1",
		"kind":       "Model",
		"metadata":   map[string]any{"name": "m"},
		"spec":       map[string]any{"format": "pb"},
	}}
	_, err := models.Create(s, model, creation)
	fails(apierrors.IsInvalid, err) // it has no URL
	succeeds(unstructured.SetNestedField(model.Object, "/models/m.pb", "spec", "url"))
	made := must(models.Create(s, model, creation))
	succeeds(unstructured.SetNestedField(made.Object, "2024-01-01T00:00:00Z", "status", "updateTime"))
	succeeds(unstructured.SetNestedField(made.Object, "ignored", "spec", "url"))
	must(models.UpdateStatus(s, made, updating))
	found := must(models.Get(s, "m", reading))
	url, _, _ := unstructured.NestedString(found.Object, "spec", "url")
	updated, _, _ := unstructured.NestedString(found.Object, "status", "updateTime")
	require(url == "/models/m.pb" && updated != "", "spec.url %q, status.updateTime %q", url, updated)
	require(len(must(models.List(s, metav1.ListOptions{})).Items) == 1, "not one model")
	succeeds(models.Delete(s, "m", deletion))
	_, err = models.Get(s, "m", reading)
	fails(apierrors.IsNotFound, err)
}

func elects(s suite) {
	ctx, resign := context.WithCancel(s)
	defer resign()
	identity := resourcelock.ResourceLockConfig{Identity: "me"}
	lock := must(resourcelock.New(
		resourcelock.LeasesResourceLock, s.namespace, "lock", s.typed.CoreV1(), s.typed.CoordinationV1(), identity,
	))
	leases := s.typed.CoordinationV1().Leases(s.namespace)
	var held *coordinationv1.Lease
	elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     100 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				held, _ = leases.Get(ctx, "lock", reading)
				resign()
			},
			OnStoppedLeading: func() {},
		},
	}))
	elector.Run(ctx)
	require(held != nil && *held.Spec.HolderIdentity == "me", "the leader did not hold the lease: %v", held)
	released := must(leases.Get(s, "lock", reading)).Spec
	require(*released.HolderIdentity == "" && *released.LeaseTransitions == 0, "the lease was not released: %v", released)
}
