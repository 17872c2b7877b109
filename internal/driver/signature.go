package driver

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
)

// ParseType reads a tensor type as users write it: f32[1,1,28,28], float32[N,3] (a name makes the size symbolic), i64[] (0-d).
func ParseType(s string) (ir.Type, error) {
	bad := func(why string) (ir.Type, error) {
		return ir.Type{}, fmt.Errorf("%q is no tensor type: %s; write for example f32[1,28,28] or f32[N,3]", shortText(s), why)
	}
	name, rest, ok := strings.Cut(strings.TrimSpace(s), "[")
	inner, closed := strings.CutSuffix(rest, "]")
	if !ok || !closed {
		return bad("sizes in brackets are missing")
	}
	d, ok := parseDType(name)
	if !ok {
		return bad("the dtype is not one of bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64")
	}
	dims := []ir.Dim{}
	if strings.TrimSpace(inner) == "" {
		return ir.TensorDims(d, dims), nil
	}
	for _, part := range strings.Split(inner, ",") {
		part = strings.TrimSpace(part)
		switch n, err := strconv.Atoi(part); {
		case err == nil && n >= 0:
			dims = append(dims, ir.Dim{N: n})
		case isIdent(part):
			dims = append(dims, ir.Dim{N: -1, Sym: part})
		default:
			return bad(fmt.Sprintf("%q is neither a size nor a name", shortText(part)))
		}
	}
	return ir.TensorDims(d, dims), nil
}

// parseDType knows the IR's names and those of torch and NumPy.
func parseDType(s string) (dtype.DType, bool) {
	s = strings.TrimSpace(s)
	if d, ok := dtype.Parse(s); ok {
		return d, true
	}
	return dtype.ParseTorch(strings.TrimPrefix(s, "torch."))
}

func isIdent(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func shortText(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
