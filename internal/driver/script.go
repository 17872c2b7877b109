package driver

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/gtc-project/gtc/script"
)

// loadScript lowers a script's entry; the weights of a module class come from the options.
func loadScript(path string, src []byte, o *Options) (*Model, error) {
	f, err := script.Parse(path, src)
	if err != nil {
		return nil, err
	}
	entry := o.Entry
	if entry == "" {
		entry = "forward"
	}
	if o.Train && !isClass(src, entry) {
		return nil, fmt.Errorf("%s: --train goes with module classes; '%s' is a function, which has no mode", path, shortText(entry))
	}
	fn, sig, err := f.Lower(entry, &script.Options{Train: o.Train, KeepGrad: o.Eager})
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Kind: Script, Entry: entry, Func: fn}
	for _, p := range sig.Params {
		m.Params = append(m.Params, Param{Name: p.Name, Type: p.Type, HasDefault: p.HasDefault, Default: p.Default})
	}
	if len(sig.Weights) == 0 && o.Weights != "" && !o.anyWeights {
		return nil, fmt.Errorf("%s: '%s' has no weights, but --weights %s was given", path, entry, o.Weights)
	}
	var specs []WeightSpec
	for _, w := range sig.Weights {
		specs = append(specs, WeightSpec{Name: w.Name, DType: w.DType, Shape: w.Shape, Buffer: w.Buffer, Init: w.Init, Value: w.Value, Also: w.Also})
	}
	if m.Weights, err = LoadWeights(o.Weights, specs); err != nil {
		return nil, err
	}
	m.Updated = len(sig.Updated)
	return m, nil
}

// isClass reports whether a script defines the class that an entry such as Net(width=8) names.
func isClass(src []byte, entry string) bool {
	name, _, _ := strings.Cut(entry, "(")
	return regexp.MustCompile(`(?m)^class\s+` + regexp.QuoteMeta(strings.TrimSpace(name)) + `\b`).Match(src)
}
