package workqueue

import "k8s.io/client-go/util/workqueue"

// number is a counter, a gauge or a histogram: it keeps its value and what was observed.
type number struct {
	value    float64
	observed []float64
}

func (n *number) Inc()                  { n.value++ }
func (n *number) Dec()                  { n.value-- }
func (n *number) Set(value float64)     { n.value = value }
func (n *number) Observe(value float64) { n.observed = append(n.observed, value) }

// take gives what was observed since the last call.
func (n *number) take() []float64 {
	observed := append([]float64{}, n.observed...)
	n.observed = nil
	return observed
}

// metrics is the provider of one queue.
type metrics struct {
	depth, adds, queued, worked, unfinished, longest, retries number
}

func (m *metrics) NewDepthMetric(string) workqueue.GaugeMetric            { return &m.depth }
func (m *metrics) NewAddsMetric(string) workqueue.CounterMetric           { return &m.adds }
func (m *metrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return &m.queued }
func (m *metrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return &m.worked }
func (m *metrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &m.unfinished
}
func (m *metrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &m.longest
}
func (m *metrics) NewRetriesMetric(string) workqueue.CounterMetric { return &m.retries }
