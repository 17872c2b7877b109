// Package layers holds the layers of torch.nn, written once, as script classes: what a layer is (its parameters, their initialisation and its forward function) is said
// in the Python files of this folder and nowhere else. Package script makes torch.nn of them; package nn makes Go types of them.
//
// Constructors run when a model is built and know a few names more than Python: _uniform(bound, shape, dtype), _normal(std, shape, dtype) and _full(value, shape, dtype) make
// parameters, _ntuple(x, n) repeats a number. Forward methods are lowered like a user's own.
package layers

import (
	"bytes"
	"embed"
	"path"
)

//go:embed *.py
var files embed.FS

// Source is the text of all files, one after another in the order of their names.
func Source() []byte {
	names, err := files.ReadDir(".")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var all bytes.Buffer
	for _, n := range names {
		text, err := files.ReadFile(path.Base(n.Name()))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		all.Write(text)
		all.WriteByte('\n')
	}
	return all.Bytes()
}
