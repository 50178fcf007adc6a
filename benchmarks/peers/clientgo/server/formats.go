package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// format is how an API server writes things.
type format interface {
	name() string
	contentTypes() (list, watch string)
	// item is a pod as it stands in a list.
	item(pod *corev1.Pod) ([]byte, error)
	// itemFrame is what stands before an item of that size, and between it and the next one.
	itemFrame(size int) (before, between []byte)
	// listFrame is what stands before and after all items, which are so many bytes with their frames.
	listFrame(meta metav1.ListMeta, items int) (head, tail []byte)
	event(kind string, pod *corev1.Pod) ([]byte, error)
}

// encodeWhole encodes a pod with its kind, and with the envelope that protobuf has.
func encodeWhole(media string, pod *corev1.Pod) ([]byte, error) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), pod)
}

type jsonFormat struct{}

func (jsonFormat) name() string { return "json" }
func (jsonFormat) contentTypes() (string, string) {
	return runtime.ContentTypeJSON, runtime.ContentTypeJSON
}
func (jsonFormat) itemFrame(int) ([]byte, []byte) { return nil, []byte(",") }

func (jsonFormat) item(pod *corev1.Pod) ([]byte, error) {
	item := *pod
	item.TypeMeta = metav1.TypeMeta{} // items of a list do not say what they are
	return json.Marshal(&item)
}

func (jsonFormat) listFrame(meta metav1.ListMeta, _ int) ([]byte, []byte) {
	encoded, err := json.Marshal(meta)
	if err != nil {
		panic(err) // strings and a number
	}
	return fmt.Appendf(nil, `{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[`, encoded), []byte("]}\n")
}

func (jsonFormat) event(kind string, pod *corev1.Pod) ([]byte, error) {
	object, err := encodeWhole(runtime.ContentTypeJSON, pod)
	return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, bytes.TrimSuffix(object, []byte("\n"))), err
}

type protobufFormat struct{}

func (protobufFormat) name() string { return "protobuf" }

func (protobufFormat) contentTypes() (string, string) {
	return runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf + ";stream=watch"
}

func (protobufFormat) item(pod *corev1.Pod) ([]byte, error) { return pod.Marshal() }

func (protobufFormat) itemFrame(size int) ([]byte, []byte) {
	return binary.AppendUvarint([]byte{2<<3 | 2}, uint64(size)), nil // PodList.items
}

func (protobufFormat) listFrame(meta metav1.ListMeta, items int) ([]byte, []byte) {
	encoded, err := meta.Marshal()
	if err != nil {
		panic(err) // strings and a number
	}
	raw := append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(encoded))), encoded...) // PodList.metadata
	out := bytes.NewBufferString("k8s\x00")
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	size, head := len(raw)+items, 0
	_, err = unknown.MarshalToWriter(out, size, func(w io.Writer) (int, error) {
		_, err := w.Write(raw)
		head = out.Len()
		return size, err // the items, which are written by others
	})
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()[:head], out.Bytes()[head:]
}

// event is a WatchEvent behind its length, as the stream's framer writes it.
func (protobufFormat) event(kind string, pod *corev1.Pod) ([]byte, error) {
	object, err := encodeWhole(runtime.ContentTypeProtobuf, pod)
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	encoded, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...), err
}
