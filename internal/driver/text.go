package driver

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gtc-project/gtc/internal/atomicfile"
	"github.com/gtc-project/gtc/ir"
)

// readText reads a text file, or stdin where path is "-".
func readText(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxSource))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot open IR text: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	case info.Size() > maxSource:
		return nil, fmt.Errorf("%s: %d bytes are too many for IR text", path, info.Size())
	}
	return os.ReadFile(path)
}

func printAll(funcs []*ir.Func) string {
	texts := make([]string, len(funcs))
	for i, f := range funcs {
		texts[i] = strings.TrimRight(printIR(f), "\n") + "\n"
	}
	return strings.Join(texts, "\n")
}

// Format gives IR text in its standard form; with write it is put into the file.
func Format(path string, stdin io.Reader, write bool) (string, error) {
	src, err := readText(path, stdin)
	if err != nil {
		return "", err
	}
	funcs, err := parseIR(path, src)
	if err != nil {
		return "", err
	}
	text := printAll(funcs)
	if write && path != "-" && text != string(src) {
		return text, atomicfile.WriteBytes(path, []byte(text))
	}
	return text, nil
}

// Optimise runs passes over IR text; the result also goes to output where that is not empty.
func Optimise(path string, stdin io.Reader, e *Observe, output string) (string, error) {
	if err := e.check(); err != nil {
		return "", err
	}
	src, err := readText(path, stdin)
	if err != nil {
		return "", err
	}
	funcs, err := parseIR(path, src)
	if err != nil {
		return "", err
	}
	for i, f := range funcs {
		e.start(f)
		if funcs[i], err = runPasses(f, e.names(), e); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if err := e.finish(); err != nil {
			return "", err
		}
	}
	text := printAll(funcs)
	if output != "" {
		return text, atomicfile.WriteBytes(output, []byte(text))
	}
	return text, nil
}

// loadIR reads IR text and chooses its entry: the function of that name, or the first.
func loadIR(path string, src []byte, o *Options) (*Model, error) {
	funcs, err := parseIR(path, src)
	if err != nil {
		return nil, err
	}
	if len(funcs) == 0 {
		return nil, fmt.Errorf("%s: error: there is no function in it", path)
	}
	f := funcs[0]
	if o.Entry != "" {
		if f = find(funcs, o.Entry); f == nil {
			return nil, fmt.Errorf("%s: error: there is no function %q; it has %s", path, shortText(o.Entry), funcNames(funcs))
		}
	}
	if o.Train {
		return nil, fmt.Errorf("%s: --train goes with the module classes of scripts; this function has its mode built in", path)
	}
	m := &Model{Path: path, Kind: IRText, Entry: f.Name, Func: f}
	for i, p := range f.Body.Params {
		m.Params = append(m.Params, Param{Name: f.ParamNames[i], Type: p.Type})
	}
	return m, nil
}

func find(funcs []*ir.Func, name string) *ir.Func {
	for _, f := range funcs {
		if f.Name == name {
			return f
		}
	}
	return nil
}

func funcNames(funcs []*ir.Func) string {
	var out []string
	for _, f := range funcs {
		out = append(out, f.Name)
	}
	return shortList(out)
}
