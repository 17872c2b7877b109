package nn

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/gtc-project/gtc/internal/safetensors"
	"github.com/gtc-project/gtc/tensor"
)

// Module is a layer or a model of one input and one output. Models of other shapes need not implement it: all functions of this package
// that walk a model take any pointer to a struct.
type Module interface {
	Forward(x *tensor.Tensor) *tensor.Tensor
}

// Entry is one named tensor of a model.
type Entry struct {
	Name   string
	Tensor *tensor.Tensor
	Buffer bool
}

// Entries lists the parameters and buffers of a model in the order of its fields; a tensor that two fields share is listed once, by its first name.
func Entries(m any) []Entry {
	var out []Entry
	seen := map[*tensor.Tensor]bool{}
	walk(reflect.ValueOf(m), "", func(e Entry) {
		if !seen[e.Tensor] {
			seen[e.Tensor] = true
			out = append(out, e)
		}
	}, func(any) {})
	return out
}

// Parameters lists the tensors that training changes.
func Parameters(m any) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, e := range Entries(m) {
		if !e.Buffer {
			out = append(out, e.Tensor)
		}
	}
	return out
}

// NumParameters counts the elements of all parameters.
func NumParameters(m any) int {
	n := 0
	for _, p := range Parameters(m) {
		n += p.NumElems()
	}
	return n
}

// ZeroGrad clears the gradients of all parameters.
func ZeroGrad(m any) {
	for _, p := range Parameters(m) {
		p.ZeroGrad()
	}
}

// moder is what layers that behave differently in training implement; embedding Mode does.
type moder interface{ setTraining(bool) }

// Mode is embedded by layers that behave differently in training and evaluation. The zero value is training mode, as in PyTorch.
type Mode struct{ eval bool }

func (m *Mode) setTraining(t bool) { m.eval = !t }

// Training reports whether the layer is in training mode.
func (m *Mode) Training() bool {
	if watching.Load() > 0 {
		watchers.Range(func(_, seen any) bool { seen.(func(*Mode))(m); return true })
	}
	return !m.eval
}

var (
	watchers sync.Map // of func(*Mode), by their own addresses
	watching atomic.Int32
)

// WatchModes calls seen with every mode that is read by Training, in any goroutine, until stop is called. Package trace thus learns which modes a
// program was made for.
func WatchModes(seen func(*Mode)) (stop func()) {
	key := new(int)
	watchers.Store(key, seen)
	watching.Add(1)
	return func() {
		watchers.Delete(key)
		watching.Add(-1)
	}
}

// Train puts a model and all its submodules into training mode.
func Train(m any) { setMode(m, true) }

// Eval puts a model and all its submodules into evaluation mode.
func Eval(m any) { setMode(m, false) }

func setMode(m any, training bool) {
	walk(reflect.ValueOf(m), "", func(Entry) {}, func(sub any) {
		if s, ok := sub.(moder); ok {
			s.setTraining(training)
		}
	})
}

// Modes lists which of the submodules that have modes are in training mode, in the order of the model's fields.
func Modes(m any) []bool {
	var out []bool
	walk(reflect.ValueOf(m), "", func(Entry) {}, func(sub any) {
		if s, ok := sub.(interface{ Training() bool }); ok {
			out = append(out, s.Training())
		}
	})
	return out
}

var tensorType = reflect.TypeFor[*tensor.Tensor]()

// walk visits every tensor and every pointer to a struct below v, fields in order.
func walk(v reflect.Value, prefix string, visit func(Entry), module func(any)) {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct || v.Type() == tensorType {
			return
		}
		if v.CanInterface() {
			module(v.Interface())
			if l, ok := v.Interface().(*Layer); ok {
				for _, e := range l.entries() {
					e.Name = joinName(prefix, e.Name)
					visit(e)
				}
				return
			}
		}
		walk(v.Elem(), prefix, visit, module)
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len(); i++ {
			walk(v.Index(i), joinName(prefix, strconv.Itoa(i)), visit, module)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if v.Field(i).Type() == tensorType {
				if e, ok := entry(f, v.Field(i), prefix); ok {
					visit(e)
				}
				continue
			}
			name := joinName(prefix, snake(f.Name))
			if f.Anonymous || f.Tag.Get("nn") == "-inline" {
				name = prefix
			}
			walk(v.Field(i), name, visit, module)
		}
	}
}

func entry(f reflect.StructField, v reflect.Value, prefix string) (Entry, bool) {
	tag, ok := f.Tag.Lookup("nn")
	if !ok || v.IsNil() {
		return Entry{}, false
	}
	name, opt, _ := strings.Cut(tag, ",")
	return Entry{Name: joinName(prefix, name), Tensor: v.Interface().(*tensor.Tensor), Buffer: opt == "buffer"}, true
}

func joinName(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// snake turns a Go field name into a Python attribute: Conv1 → conv1, FC → fc, LayerNorm → layer_norm.
func snake(s string) string {
	var sb strings.Builder
	rs := []rune(s)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(rs[i-1]) || unicode.IsDigit(rs[i-1]) && i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			sb.WriteByte('_')
		}
		sb.WriteRune(unicode.ToLower(r))
	}
	return sb.String()
}

// StateDict gives all parameters and buffers by name, sharing their memory.
func StateDict(m any) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for _, e := range Entries(m) {
		out[e.Name] = e.Tensor
	}
	return out
}

// LoadStateDict copies values into the model's parameters and buffers. With strict, every entry of the model must be there and no other; without, those that
// match are loaded. All misfits are reported in one error, before anything is changed.
func LoadStateDict(m any, state map[string]*tensor.Tensor, strict bool) error {
	var bad []string
	entries := Entries(m)
	known := map[string]bool{}
	for _, e := range entries {
		known[e.Name] = true
		src := state[e.Name]
		switch {
		case src == nil:
			if strict {
				bad = append(bad, "missing "+e.Name)
			}
		case fmt.Sprint(src.Shape()) != fmt.Sprint(e.Tensor.Shape()):
			bad = append(bad, fmt.Sprintf("%s has shape %v, the model expects %v", e.Name, src.Shape(), e.Tensor.Shape()))
		}
	}
	for name := range state {
		if strict && !known[name] {
			bad = append(bad, "unexpected "+name)
		}
	}
	if len(bad) > 0 {
		sort.Strings(bad)
		return fmt.Errorf("nn.LoadStateDict: %s", strings.Join(bad, "; "))
	}
	for _, e := range entries {
		if src := state[e.Name]; src != nil {
			if err := tensor.NoGrad(e.Tensor).CopyFrom(src.Detach()).Err(); err != nil {
				return fmt.Errorf("nn.LoadStateDict: %s: %w", e.Name, err)
			}
		}
	}
	return nil
}

// Save writes the state dict as a safetensors file; the file appears whole or not at all.
func Save(m any, path string) error {
	var tensors []safetensors.Named
	for _, e := range Entries(m) {
		if err := e.Tensor.Err(); err != nil {
			return fmt.Errorf("nn.Save: %s: %w", e.Name, err)
		}
		tensors = append(tensors, safetensors.Named{Name: e.Name, Array: e.Tensor.Array().Contiguous()})
	}
	return safetensors.Write(path, tensors, nil)
}

// Load reads a safetensors file into the model; see LoadStateDict.
func Load(m any, path string, strict bool) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	state := map[string]*tensor.Tensor{}
	for _, name := range f.Names() {
		a, err := f.Read(name)
		if err != nil {
			return err
		}
		state[name] = tensor.FromArray(a)
	}
	return LoadStateDict(m, state, strict)
}
