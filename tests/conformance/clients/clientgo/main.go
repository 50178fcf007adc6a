// Command clientgo checks, rule by rule, that a cluster is one that client-go can work with. It wants a namespace that
// is its own and the definition of pysedna's Models, prints a line for each rule and "ok" at the end; at the first rule
// that does not hold it says why and exits with 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is for one rule.
const patience = 30 * time.Second

// suite is what the rules work with.
type suite struct {
	context.Context
	namespace string
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	streamed  *atomic.Int32 // watches that were granted with sendInitialEvents
}

// granted counts the streaming lists that the server agreed to: an informer that is refused one falls back in silence.
type granted struct {
	http.RoundTripper
	count *atomic.Int32
}

func (g granted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.RoundTripper.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusOK && request.URL.Query().Get("sendInitialEvents") == "true" {
		g.count.Add(1)
	}
	return response, err
}

// must gives a value that was to be had without an error.
func must[T any](value T, err error) T {
	succeeds(err)
	return value
}

// succeeds ends the rule with an error if there is one.
func succeeds(err error) {
	if err != nil {
		panic(err)
	}
}

// require ends the rule unless something is so.
func require(so bool, format string, values ...any) {
	if !so {
		panic(fmt.Errorf(format, values...))
	}
}

// fails ends the rule unless there was an error of the kind that is asked for (an apierrors.IsX).
func fails(is func(error) bool, err error) {
	require(err != nil, "there was no error")
	require(is(err), "another error than expected: %v", err)
}

// holds runs one rule and says how it went.
func (s suite) holds(name string, rule func(suite)) (held bool) {
	ctx, cancel := context.WithTimeout(s.Context, patience)
	defer cancel()
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Printf("FAILED %s: %v\n", name, problem)
		}
	}()
	s.Context = ctx
	rule(s)
	fmt.Println(name)
	return true
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	namespace := flag.String("namespace", "", "a namespace that nobody else writes to")
	flag.Parse()
	config := must(clientcmd.BuildConfigFromFlags("", *kubeconfig))
	config.ContentType = "application/json" // left unset, typed clients write protobuf: not for an embedded cluster
	config.QPS = -1                         // no throttling of our own
	streamed := &atomic.Int32{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return granted{next, streamed} })
	s := suite{
		Context:   context.Background(),
		namespace: *namespace,
		typed:     kubernetes.NewForConfigOrDie(config),
		dynamic:   dynamic.NewForConfigOrDie(config),
		streamed:  streamed,
	}
	for _, each := range rules {
		if !s.holds(each.name, each.rule) {
			os.Exit(1)
		}
	}
	fmt.Println("ok")
}
