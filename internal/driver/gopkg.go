package driver

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"text/template"
	"unicode"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/ir"
)

//go:embed gopkg.tmpl
var goText string

var goTemplate = template.Must(template.New("go").Funcs(template.FuncMap{"names": goNames, "declare": goDeclare}).Parse(goText))

// goFunc is what the template needs to know.
type goFunc struct {
	Package, Source, Embed string // names of the package, of the model's file, and of the embedded file
	Func, Var              string
	Entry                  string
	Params, Results        []goValue
	Tensors                bool // whether package tensor is used
}

// goValue is a parameter or result: its name, its type in Go, and how the IR says its type.
type goValue struct{ Name, Type, IR string }

// writeGo writes a Go file with a typed function around the model, and beside it the package that the file embeds.
func (m *Model) writeGo(output string, f *ir.Func) error {
	base := strings.TrimSuffix(filepath.Base(output), ".go")
	g := goFunc{Package: goPackage(output), Source: filepath.Base(m.Path), Embed: base + ".gtc", Entry: f.Name, Func: exportedName(f.Name)}
	if f.Name == "forward" { // which says nothing
		g.Func = exportedName(base)
	}
	g.Var = goIdent(base) + "Package"
	if m.Updated > 0 {
		return fmt.Errorf("--emit=go: the model updates buffers (--train); a Go package holds fixed weights only")
	}
	taken := map[string]bool{"ctx": true, "err": true, "out": true, "p": true, g.Var: true}
	n := len(f.Body.Params) - len(m.Weights)
	for i, p := range f.Body.Params[:n] {
		t, ok := goType(p.Type)
		if !ok {
			return fmt.Errorf("--emit=go: parameter %s is %s, which has no Go type here; give it a default and take it out of the signature, or wrap the function", f.ParamNames[i], typeName(p.Type))
		}
		name := goIdent(f.ParamNames[i])
		for taken[name] || token.IsKeyword(name) {
			name += "_"
		}
		taken[name] = true
		g.Params = append(g.Params, goValue{name, t, p.Type.String()})
	}
	var err error
	if g.Results, err = goResults(f.ResultTypes(), nil); err != nil {
		return err
	}
	for _, v := range append(g.Params, g.Results...) {
		g.Tensors = g.Tensors || v.Type == "*tensor.Tensor"
	}
	var text bytes.Buffer
	if err := goTemplate.Execute(&text, g); err != nil {
		return err
	}
	code, err := format.Source(text.Bytes())
	if err != nil {
		return fmt.Errorf("internal error: the Go file is malformed: %w", err)
	}
	if err := m.writePackage(filepath.Join(filepath.Dir(output), g.Embed), f); err != nil {
		return err
	}
	return atomicfile.WriteBytes(output, code)
}

func goType(t ir.Type) (string, bool) {
	switch t.Kind {
	case ir.KTensor:
		return "*tensor.Tensor", true
	case ir.KInt:
		return "int", true
	case ir.KFloat:
		return "float64", true
	case ir.KBool:
		return "bool", true
	}
	return "", false
}

// goResults are the results of the Go function: a tuple becomes its elements.
func goResults(types []ir.Type, out []goValue) ([]goValue, error) {
	for _, t := range types {
		if t.Kind == ir.KTuple {
			var err error
			if out, err = goResults(t.Elems, out); err != nil {
				return nil, err
			}
			continue
		}
		gt, ok := goType(t)
		if !ok {
			return nil, fmt.Errorf("--emit=go: a result is %s, which has no Go type here; return tensors, numbers and tuples of these", typeName(t))
		}
		out = append(out, goValue{fmt.Sprintf("r%d", len(out)), gt, t.String()})
	}
	return out, nil
}

// goPackage is the name of the Go package that a file belongs to: that of the files beside it, or the folder's.
func goPackage(output string) string {
	dir, err := filepath.Abs(filepath.Dir(output))
	if err != nil {
		return "model"
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == filepath.Base(output) {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly); err == nil {
			return f.Name.Name
		}
	}
	return strings.ToLower(goIdent(filepath.Base(dir)))
}

// goIdent makes a Go identifier of a name.
func goIdent(name string) string {
	id := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	if id == "" || unicode.IsDigit(rune(id[0])) {
		id = "m" + id
	}
	return id
}

// exportedName is Forward for forward, and RunOnce for run_once.
func exportedName(name string) string {
	var sb strings.Builder
	for _, word := range strings.Split(goIdent(name), "_") {
		if word != "" {
			sb.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	if sb.Len() == 0 || !unicode.IsUpper(rune(sb.String()[0])) {
		return "Model" + sb.String()
	}
	return sb.String()
}

// goNames lists the names of values, and goDeclare names with types.
func goNames(vs []goValue) string {
	var sb strings.Builder
	for _, v := range vs {
		sb.WriteString(", " + v.Name)
	}
	return sb.String()
}

func goDeclare(vs []goValue) string {
	var sb strings.Builder
	for _, v := range vs {
		sb.WriteString(", " + v.Name + " " + v.Type)
	}
	return sb.String()
}
