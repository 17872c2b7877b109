// Package serve answers inference requests over HTTP in the Open Inference Protocol, version 2, with JSON tensors.
//
//	request JSON -> decode (tensor.go) -> driver.Runner -> encode -> response JSON
//
// Inputs are a model's parameters by name, outputs are out.0, out.1, …, as in the files of gtc run. JSON has no NaN and no infinities: they are the
// strings "NaN", "Infinity" and "-Infinity", in both directions.
package serve
