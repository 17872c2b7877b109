// Package driver does what the gtc commands do with a model: it reads it, binds arrays to its parameters by name, runs it with
// gradients on a target, and names the results. The command line and the conformance tests call the same functions.
//
//	model file -> Load -> Model -> Bind(arrays) -> Execute -> named results
package driver
