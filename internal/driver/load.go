package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gtc-project/gtc/internal/pkgfile"
	"github.com/gtc-project/gtc/ir"
)

// maxSource bounds a script or IR text.
const maxSource = 1 << 28

// Kind is a form of model file.
type Kind string

// The forms of model file that are read.
const (
	Script  Kind = "script"
	IRText  Kind = "ir"
	Package Kind = "package"
	Go      Kind = "go" // a function of a Go package, traced when it is loaded
)

// Model is a loaded model with its entry chosen.
type Model struct {
	Path    string
	Kind    Kind
	Entry   string
	Func    *ir.Func // generic; its parameters are Params and then Weights
	Params  []Param
	Weights []Weight
	Updated int // the last results of Func are new values of so many buffers, not results of the model
}

// Weight is a parameter of the model's function whose value does not come from a call's arguments.
type Weight struct {
	Name      string
	Array     *ir.Array
	Trainable bool // gradients are wanted: a parameter, not a buffer
}

// Load reads a model and chooses its entry. Errors name the file, and line and column where there are any.
func Load(path string, o *Options) (*Model, error) {
	kind, src, err := sniff(path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Go:
		return loadGo(path, o)
	case Package:
		return loadPackage(path, o)
	case IRText:
		if err := withoutWeights(path, o); err != nil {
			return nil, err
		}
		return loadIR(path, src, o)
	}
	return loadScript(path, src, o)
}

// withoutWeights refuses weights for a model that has none of its own.
func withoutWeights(path string, o *Options) error {
	if o.Weights == "" || o.anyWeights {
		return nil
	}
	return fmt.Errorf("%s: IR text has no weights of its own, but --weights %s was given: its function takes all values as arguments; a package (.gtc) holds weights", path, o.Weights)
}

// loadShape is Load for commands that only look at a model: weights that are not given are made up.
func loadShape(path string, o *Options) (*Model, error) {
	look := *o
	if look.Weights == "" {
		look.Weights, look.anyWeights = "random:0", true
	}
	return Load(path, &look)
}

// sniff tells the form of a model by its content first and its name second.
func sniff(path string) (Kind, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		if looksLikeGo(path) {
			return Go, nil, nil
		}
		return "", nil, fmt.Errorf("cannot open the model: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", nil, err
	case info.IsDir():
		return "", nil, fmt.Errorf("%s: it is a folder; a MODEL is a .py, .gts, .gtir or .gtc file", path)
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("%s: it is not a regular file", path)
	case info.Size() == 0:
		return "", nil, fmt.Errorf("%s: the file is empty", path)
	}
	start := make([]byte, min(info.Size(), 512))
	if _, err := io.ReadFull(f, start); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	kind, err := classify(start, strings.ToLower(filepath.Ext(path)))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	if kind == Package {
		return kind, nil, nil
	}
	if info.Size() > maxSource {
		return "", nil, fmt.Errorf("%s: %d bytes are too many for program text", path, info.Size())
	}
	src, err := io.ReadAll(io.MultiReader(bytes.NewReader(start), f))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	if !utf8.Valid(src) {
		return "", nil, fmt.Errorf("%s:%d: error: the file is not valid UTF-8 text", path, invalidLine(src))
	}
	return kind, src, nil
}

// classify decides by a file's first bytes and its extension.
func classify(start []byte, ext string) (Kind, error) {
	switch {
	case bytes.HasPrefix(start, []byte("PK")):
		switch ext {
		case ".pt", ".pth":
			return "", errors.New("TorchScript archives are not supported by this version; save the script's source as .py")
		case ".npz":
			return "", errors.New("this is an array file, not a model; pass it with --inputs")
		}
		return Package, nil
	case bytes.HasPrefix(start, []byte("\x93NUMPY")):
		return "", errors.New("this is an array file, not a model; pass it with --input NAME=FILE.npy")
	case bytes.HasPrefix(start, []byte("\x7fELF")):
		return "", errors.New("error: this is a machine-code file, not a model")
	case ext == ".onnx":
		return "", errors.New("ONNX files are not supported by this version")
	case ext == ".gtc":
		return Package, nil
	case ext == ".gtir":
		return IRText, nil
	case ext == ".py", ext == ".gts":
		return Script, nil
	case ext == ".pt", ext == ".pth":
		return "", errors.New("TorchScript archives are not supported by this version; save the script's source as .py")
	case isIRText(start):
		return IRText, nil
	case bytes.Contains(start, []byte("def ")), bytes.Contains(start, []byte("import ")):
		return Script, nil
	}
	return "", errors.New("this is no known form of model; a MODEL is a .py, .gts, .gtir or .gtc file")
}

// isIRText reports whether a text without a telling name starts as IR does: with `func @name` or comments before it.
func isIRText(start []byte) bool {
	for line := range bytes.Lines(start) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		return bytes.HasPrefix(line, []byte("func "))
	}
	return false
}

func invalidLine(src []byte) int {
	line := 1
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		src = src[n:]
	}
	return line
}

// looksLikeGo reports whether an argument that is no file may be meant as ./models/lenet.New.
func looksLikeGo(path string) bool {
	dir, name := filepath.Split(path)
	_, fn, ok := strings.Cut(name, ".")
	return ok && fn != "" && fn[0] >= 'A' && fn[0] <= 'Z' && (strings.Contains(dir, "/"))
}

func loadPackage(path string, o *Options) (*Model, error) {
	p, err := pkgfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if o.Entry == "" {
		o.Entry = p.Manifest.Entry
	}
	m, err := loadIR(path, []byte(p.Module), o)
	if err != nil {
		return nil, err
	}
	m.Kind = Package
	if err := m.takePackaged(p); err != nil || o.Weights == "" || o.anyWeights {
		return m, err
	}
	return m, m.replaceWeights(o.Weights)
}

// replaceWeights gives the weights other values.
func (m *Model) replaceWeights(source string) error {
	if len(m.Weights) == 0 {
		return fmt.Errorf("%s: '%s' has no weights, but --weights %s was given", m.Path, m.Entry, source)
	}
	specs := make([]WeightSpec, len(m.Weights))
	for i, w := range m.Weights {
		specs[i] = WeightSpec{Name: w.Name, DType: w.Array.DType, Shape: w.Array.Shape, Buffer: !w.Trainable}
	}
	weights, err := LoadWeights(source, specs)
	m.Weights = weights
	return err
}

// takePackaged takes over what the manifest says, and turns the parameters that the package has values for into weights.
func (m *Model) takePackaged(p *pkgfile.Package) error {
	for i, q := range m.Params {
		text, ok := p.Manifest.Defaults[q.Name]
		if !ok {
			continue
		}
		d, err := ir.ParseDatum(text)
		if err != nil {
			return fmt.Errorf("%s: the default of %s: %w", m.Path, q.Name, err)
		}
		m.Params[i].HasDefault, m.Params[i].Default = true, d
	}
	if n := p.Manifest.Updated; n < 0 || n > len(m.Func.Returns()) {
		return fmt.Errorf("%s: the manifest counts %d updated buffers, but there are %d results", m.Path, n, len(m.Func.Returns()))
	}
	m.Updated = p.Manifest.Updated
	if p.Weights == nil {
		return nil
	}
	buffers := map[string]bool{}
	for _, n := range p.Manifest.Buffers {
		buffers[n] = true
	}
	have := map[string]bool{}
	for _, n := range p.Weights.Names() {
		have[n] = true
	}
	params := m.Params
	m.Params = nil
	for i, q := range params {
		if !have[q.Name] {
			if len(m.Weights) > 0 {
				return fmt.Errorf("%s: parameter %s of %s comes after weights; arguments must come first", m.Path, q.Name, m.Entry)
			}
			m.Params = append(m.Params, params[i])
			continue
		}
		a, err := p.Weights.Read(q.Name)
		if err != nil {
			return err
		}
		if !q.Type.Accepts(a.Type()) {
			return fmt.Errorf("%s: weight %s is %s, but the model expects %s", m.Path, q.Name, a.Type(), q.Type)
		}
		m.Weights = append(m.Weights, Weight{Name: q.Name, Array: a, Trainable: a.DType.IsFloat() && !buffers[q.Name]})
		delete(have, q.Name)
	}
	for _, n := range p.Weights.Names() {
		if have[n] {
			return fmt.Errorf("%s: weight %q belongs to no parameter of %s", m.Path, n, m.Entry)
		}
	}
	return nil
}
