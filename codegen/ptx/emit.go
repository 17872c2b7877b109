package ptx

import (
	"fmt"
	"math"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// writer writes the body of one function as LLVM text. Values get names of their own; so do blocks.
type writer struct {
	text  []byte
	count int
	block string // the label of the block that is being written
}

// val writes an instruction that defines a value, and gives the value's name.
func (w *writer) val(format string, args ...any) string {
	name := w.fresh("v")
	w.do(strings.ReplaceAll(name, "%", "%%")+" = "+format, args...)
	return name
}

// do writes an instruction without a result.
func (w *writer) do(format string, args ...any) {
	w.text = append(w.text, "  "...)
	w.text = fmt.Appendf(w.text, format, args...)
	w.text = append(w.text, '\n')
}

// label starts a block.
func (w *writer) label(name string) {
	w.text = fmt.Appendf(w.text, "%s:\n", name)
	w.block = name
}

// fresh is a value's name that is not in use.
func (w *writer) fresh(prefix string) string {
	w.count++
	return fmt.Sprintf("%%%s%d", prefix, w.count)
}

// labels gives block names that are not in use, one per prefix.
func (w *writer) labels(prefixes ...string) []string {
	w.count++
	out := make([]string, len(prefixes))
	for i, p := range prefixes {
		out[i] = fmt.Sprintf("%s%d", p, w.count)
	}
	return out
}

// loop writes a loop in which i counts from start in steps while i < end. carried are pairs of type and initial value; body gets i and
// the carried values and gives their next values. The result are the carried values after the loop.
func (w *writer) loop(start, end, step string, carried [][2]string, body func(i string, vals []string) []string) []string {
	ls := w.labels("head", "body", "done")
	head, inside, done := ls[0], ls[1], ls[2]
	from := w.block
	w.do("br label %%%s", head)
	w.label(head)
	i, vals := w.fresh("i"), make([]string, len(carried))
	for k := range carried {
		vals[k] = w.fresh("c")
	}
	// The phis come first but name what the body defines and the block it ends in: they are put in afterwards.
	phis := len(w.text)
	more := w.val("icmp ult i64 %s, %s", i, end)
	w.do("br i1 %s, label %%%s, label %%%s", more, inside, done)
	w.label(inside)
	next := body(i, vals)
	nextI := w.val("add i64 %s, %s", i, step)
	last := w.block
	w.do("br label %%%s", head)
	rest := string(w.text[phis:])
	w.text = w.text[:phis]
	w.do("%s = phi i64 [ %s, %%%s ], [ %s, %%%s ]", i, start, from, nextI, last)
	for k, c := range carried {
		w.do("%s = phi %s [ %s, %%%s ], [ %s, %%%s ]", vals[k], c[0], c[1], from, next[k], last)
	}
	w.text = append(w.text, rest...)
	w.label(done)
	return vals
}

// when writes a block that runs where cond holds.
func (w *writer) when(cond string, body func()) {
	ls := w.labels("then", "join")
	w.do("br i1 %s, label %%%s, label %%%s", cond, ls[0], ls[1])
	w.label(ls[0])
	body()
	w.do("br label %%%s", ls[1])
	w.label(ls[1])
}

// call calls an intrinsic, which the module declares.
func (w *writer) call(m *module, ret, name string, args ...string) string {
	types := make([]string, len(args))
	for i, a := range args {
		types[i], _, _ = strings.Cut(a, " ")
	}
	m.declare(fmt.Sprintf("declare %s @%s(%s)", ret, name, strings.Join(types, ", ")))
	if ret == "void" {
		w.do("call void @%s(%s)", name, strings.Join(args, ", "))
		return ""
	}
	return w.val("call %s @%s(%s)", ret, name, strings.Join(args, ", "))
}

// regType is the LLVM type of a register (scalar.RegType) of dtype d.
func regType(d dtype.DType) string {
	switch d {
	case dtype.Bool:
		return "i1"
	case dtype.U8, dtype.I8:
		return "i8"
	case dtype.I16:
		return "i16"
	case dtype.I32:
		return "i32"
	case dtype.I64:
		return "i64"
	case dtype.F64:
		return "double"
	}
	return "float"
}

// memType is the LLVM type of an element in memory.
func memType(d dtype.DType) string {
	switch {
	case d == dtype.Bool:
		return "i8"
	case d.IsHalf():
		return "i16"
	}
	return regType(d)
}

// bitsOf is the width of an LLVM scalar type.
func bitsOf(t string) int {
	switch t {
	case "i1":
		return 1
	case "i8":
		return 8
	case "i16":
		return 16
	case "i64", "double":
		return 64
	}
	return 32
}

// constant is the constant of LLVM type t with the given bits.
func constant(t string, bits uint64) string {
	switch t {
	case "i1":
		if bits&1 != 0 {
			return "true"
		}
		return "false"
	case "double":
		return fmt.Sprintf("0x%016X", bits)
	case "float":
		return fmt.Sprintf("0x%016X", widenBits(uint32(bits)))
	}
	return fmt.Sprint(int64(bits<<(64-bitsOf(t))) >> (64 - bitsOf(t)))
}

// widenBits gives the bits of a double with the value of a float, as LLVM writes floats; NaN payloads are kept.
func widenBits(b uint32) uint64 {
	if b&0x7fffffff > 0x7f800000 {
		return uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29
	}
	return math.Float64bits(float64(math.Float32frombits(b)))
}

// floatConst is a float constant of register type t.
func floatConst(t string, v float64) string {
	if t == "float" {
		return constant(t, uint64(math.Float32bits(float32(v))))
	}
	return constant(t, math.Float64bits(v))
}
