package main

// discovery is what clients ask before they list. There are pods to be had; kopf wants to know of namespaces first.
var discovery = map[string]string{
	"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.2"}`,
	"/api":     `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}`,
	"/apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod",` +
		`"namespaced":true,"kind":"Pod","verbs":["get","list","watch"]},` +
		`{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["get"]}]}`,
}
