package ir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/ir/dtype"
)

// sampleText shows everything that the text form can say.
const sampleText = `func @forward(%x: tensor<f32[2,3]>, %k: int, %"odd name": optional<tensor<?>>) {
  %0: tensor<f32[2,3]> = aten.softmax(%x, 1, none) @ "model.py":7:12
  %1: any = py_add(%k, 1)
  %c: bool = py_lt(%k, -3)
  %2: tensor<?>, %3: int = if(%c) {
    yield %x, 1
  } else {
    %4: tensor<?> = aten."odd callee"(%x, [%"odd quote"], nan)
    yield %4, %k
  } @ "model.py":8:1
  %5: tensor<?> = while(%x) cond(%a: tensor<?>) {
    yield %c
  } body(%b: tensor<?>) {
    yield %b
  }
  %6: tensor<?> = for(%k, %x) (%i: int, %d: tensor<?>) {
    %7: tensor<?>, %8: any = vjp[2].aten.gelu(%d, "none", %d, none)
    yield %7
  }
  %9: tensor<f32[2,3]> = fused.k1(%x) (%e: tensor<f32[2,3]>) {
    %10: tensor<f32[2,3]> = mul(%e, f32[2,3]{1.0,2.0,nan,-inf,-0.0,1e-10})
    yield %10
  }
  %11: any = grad[1](%x, none, %x)
  %12: tensor<i64[0]> = full([0], 1, dtype.i64)
  print("a\n\"b\"", (1, 2.5), {"k": [true, false], 2: none}, ())
  return %2, %9
}
`

// Printing what was parsed gives the text again.
func TestTextRoundTrip(t *testing.T) {
	text := strings.ReplaceAll(sampleText, `[%"odd quote"]`, `["q"]`)
	fs, err := ParseString("sample.gtir", text+"\n"+strings.Replace(text, "@forward", `@"two words"`, 1))
	require.NoError(t, err)
	require.Len(t, fs, 2)
	require.Equal(t, text, fs[0].String())
	require.Equal(t, "two words", fs[1].Name)
	var sb strings.Builder
	require.NoError(t, WriteText(&sb, fs...))
	again, err := ParseString("again", sb.String())
	require.NoError(t, err)
	require.Equal(t, sb.String(), again[0].String()+"\n"+again[1].String())
	require.Equal(t, Pos{"model.py", 7, 12}, fs[0].Body.Nodes[2].Pos)
}

// Result types may be left out; then they are inferred. Comments and free layout are accepted.
func TestTextInfersTypes(t *testing.T) {
	f, err := ParseFunc(`func @f(%x: tensor<f32[2,3]>, %c: bool) { // a comment
		%y = sum(%x, [1], false) %z = if(%c) { yield(%y) } else { %n = neg(%y) yield %n }
		return(%z) }`)
	require.NoError(t, err)
	require.Equal(t, "tensor<f32[2]>", f.ResultTypes()[0].String())
	out, err := (&Evaluator{}).Run(context.Background(), f, FromFloats(dtype.F32, []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}), false)
	require.NoError(t, err)
	require.Equal(t, "f32[2]{-6.0,-15.0}", FormatDatum(out[0]))
}

// Names that clash get numbers, and those survive.
func TestTextNamesAreUnique(t *testing.T) {
	f := NewFunc("f")
	b := NewBuilder(f)
	x := f.Param("x", TensorOf(dtype.F32))
	require.NoError(t, Try(func() {
		for range 3 {
			y := b.Op("neg", x)
			y.Name = "x"
			x = y
		}
		y := b.Op("neg", x)
		y.Name = "0"
		z := b.Op("neg", y)
		y.Name = "x.1"
		b.Return(b.Op("neg", z))
	}))
	text := f.String()
	require.Contains(t, text, "%x.1.1: tensor<f32[]> = neg(%x.3)")
	again, err := ParseFunc(text)
	require.NoError(t, err)
	require.Equal(t, text, again.String())
}

func TestTypesAndLiteralsRoundTrip(t *testing.T) {
	for _, s := range []string{
		"any", "int", "float", "bool", "str", "dtype", "none", "tensor<?>", "tensor<f32[*]>", "tensor<?[2,?]>", "tensor<bf16[2,N,?]>", "tensor<i64[]>",
		"list<int>", "tuple<>", "tuple<int,list<tensor<?>>>", "dict<str,tensor<u8[3]>>", "optional<float>",
	} {
		ty, err := ParseType(s)
		require.NoError(t, err)
		require.Equal(t, s, ty.String())
	}
	for _, d := range []Datum{
		int64(math.MinInt64), 1e300, -0.5, math.Inf(-1), math.Copysign(0, -1), 3.0, true, "a\x00\"\u00e9", nil, dtype.F16, NewList(), Tuple{}, Tuple{int64(1)},
		NewDict([]Datum{"a", int64(2)}, []Datum{1.5, nil}), FromFloats(dtype.BF16, []int{2, 1}, []float64{1.5, -2}),
		FromFloats(dtype.Bool, []int{2}, []float64{1, 0}), FromFloats(dtype.U8, []int{0, 3}, nil), FromFloats(dtype.F64, nil, []float64{0.1}),
	} {
		s := FormatDatum(d)
		got, err := ParseDatum(s)
		require.NoError(t, err, s)
		require.Equal(t, s, FormatDatum(got))
	}
}

// Mistakes in text are reported with file, line, column and a caret.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `ir:1:1: expected a function`},
		{"func @f(%x int) {}", "ir:1:12: expected \":\" after a parameter, found \"int\"\n  func @f(%x int) {}\n             ^"},
		{"func @f(%x: tensor<f99[2]>) {}", `1:20: expected a dtype (bool, u8`},
		{"func @f(%x: tensor<f32[-2]>) {}", `1:24: the size -2 is negative`},
		{"func @f(%x: tensor<f32[4294967296,4294967296]>) {}", `too many elements`},
		{"func @f(%x: tensor<f32[99999999999999999999999]>) {}", `1:24: the integer 99999999999999999999999 is out of range`},
		{"func @f() {\n  return %y\n}", "ir:2:10: %y is not defined before this use"},
		{"func @f(%c: bool) { %y = if(%c) { %z = py_neg(1) yield %z } else { yield 2 } return %z }", "%z is not visible here"},
		{"func @f(%x: int) { %x = py_neg(1) return %x }", "%x is defined twice"},
		{"func @f() { frobnicate() }", `unknown op "frobnicate"`},
		{"func @f() { return \"abc\n }", `unterminated string`},
		{"func @f() { return f32[3]{1,2} }", `the shape [3] has 3 elements, got 2`},
		{"func @f() { return f32[1]{1,2} }", `the shape [1] has only 1 elements`},
		{"func @f() { return f32[1000000000000]{1} }", `elements, got 1`},
		{"func @f() { return f32[1]{1e99} }", `out of range for f32`},
		{"func @f() { return 1 } func @f() { return 1 }", `@f is defined twice`},
		{"func @f() { return 1", `expected "}" at the end of a block`},
		{"func @f() { return " + strings.Repeat("[", 100000), `nested more than 500 levels deep`},
		{"func @f(%x: " + strings.Repeat("list<", 100000), `nested more than 500 levels deep`},
		{"func @f(%c: bool) {" + strings.Repeat("if(%c) {", 100000), `nested more than 500 levels deep`},
		{"func @f() { %x = sum(1, [0], true) return %x }", `sum: expected a tensor for x, got int`},
		{"func @f(%x: tensor<f32[2]>) {\n  %y: tensor<f32[3]> = neg(%x)\n  return %y }", `2:3: func @f: %y = neg(%x): result 0 is of type tensor<f32[3]>, expected tensor<f32[2]> (constraint 6)`},
		{"func @f() { \x00 }", `found '\x00'`},
		{"func @f() { \xff }", `the byte 0xff, which is not UTF-8`},
	} {
		_, err := ParseString("ir", c.text)
		require.Error(t, err, c.text)
		require.Contains(t, err.Error(), c.want)
		require.Less(t, len(err.Error()), 700)
	}
}

// Files that nobody meant well are refused with a place.
func TestHostileText(t *testing.T) {
	files, _ := filepath.Glob("../testdata/hostile/ir/*.gtir")
	for _, f := range files {
		_, err := ParseFile(f)
		var pe *ParseError
		require.True(t, errors.As(err, &pe), "%s: %v", f, err)
	}
}

// A chain of 100,000 nodes prints, parses, verifies, runs and copies in linear time.
func TestLongChain(t *testing.T) {
	f := NewFunc("chain")
	b := NewBuilder(f)
	x := f.Param("x", TensorOf(dtype.F32, 1))
	require.NoError(t, Try(func() {
		for range 100000 {
			x = b.Op("neg", x)
		}
		b.Return(x)
	}))
	start := time.Now()
	g, err := ParseFunc(f.String())
	require.NoError(t, err)
	require.Len(t, g.Body.Nodes, 100001)
	require.Empty(t, Verify(g.Clone()))
	require.Less(t, time.Since(start), 20*time.Second)
}

// Broken functions are reported by the number of the constraint.
func TestVerify(t *testing.T) {
	f32 := TensorOf(dtype.F32, 2)
	build := func(f func(fn *Func, b *Builder, x *Value)) *Func {
		fn := NewFunc("f")
		x := fn.Param("x", f32)
		f(fn, NewBuilder(fn), x)
		return fn
	}
	neg := LookupOp("neg")
	for _, c := range []struct {
		rule Rule
		want string
		f    *Func
	}{
		{RuleParams, "expected 1 parameter names", build(func(fn *Func, b *Builder, x *Value) { fn.ParamNames = nil; b.Return() })},
		{RuleParams, "two parameters are named", build(func(fn *Func, b *Builder, x *Value) { fn.Param("x", f32); b.Return() })},
		{RuleValues, "does not know its definition", build(func(fn *Func, b *Builder, x *Value) { b.Op("neg", x).Def = nil; b.Return() })},
		{RuleValues, "defined twice", build(func(fn *Func, b *Builder, x *Value) {
			fn.Body.Params = append(fn.Body.Params, x)
			fn.ParamNames = append(fn.ParamNames, "y")
			b.Return()
		})},
		{RuleScope, "operand 0, %1, is not defined before its use", build(func(fn *Func, b *Builder, x *Value) {
			y := b.Op("neg", x)
			y.Def.Args[0] = b.Op("neg", y)
			b.Return()
		})},
		{RuleScope, "does not enclose its use", build(func(fn *Func, b *Builder, x *Value) {
			var inner *Value
			side := func() []*Value { inner = b.Op("neg", x); return nil }
			b.If(b.Bool(true), side, side)
			b.Return(inner)
		})},
		{RuleTerminator, "expected the block to end with return", build(func(fn *Func, b *Builder, x *Value) { b.Yield() })},
		{RuleTerminator, "not the last node", build(func(fn *Func, b *Builder, x *Value) { b.Return(); b.Return() })},
		{RuleTerminator, "it is empty", build(func(fn *Func, b *Builder, x *Value) {})},
		{RuleOperands, "expected 1 operands (x), got 2", build(func(fn *Func, b *Builder, x *Value) { b.Node(neg, Attrs{}, nil, []Type{f32}, x, x); b.Return() })},
		{RuleTypes, "expected 1 results, got 0", build(func(fn *Func, b *Builder, x *Value) { b.Node(neg, Attrs{}, nil, nil, x); b.Return() })},
		{RuleTypes, "cannot be broadcast", build(func(fn *Func, b *Builder, x *Value) {
			b.Node(LookupOp("broadcast"), Attrs{}, nil, []Type{f32}, x, b.Ints(3))
			b.Return()
		})},
		{RuleBlocks, "takes no blocks", build(func(fn *Func, b *Builder, x *Value) {
			blk := &Block{}
			b.In(blk, func() { b.Yield() })
			b.Node(neg, Attrs{}, []*Block{blk}, []Type{f32}, x)
			b.Return()
		})},
		{RuleBlocks, "what the second block of if yields: expected 1 values, got 0", build(func(fn *Func, b *Builder, x *Value) {
			blks := []*Block{{}, {}}
			b.In(blks[0], func() { b.Yield(x) })
			b.In(blks[1], func() { b.Yield() })
			b.Node(OpIf, Attrs{}, blks, []Type{f32}, b.Bool(true))
			b.Return()
		})},
		{RuleBlocks, "what the body of while yields: value 0", build(func(fn *Func, b *Builder, x *Value) {
			b.While([]*Value{x}, nil, func(c []*Value) *Value { return b.Bool(false) }, func(c []*Value) []*Value { return []*Value{b.Int(1)} })
			b.Return()
		})},
		{RuleFused, "cannot be part of a kernel", build(func(fn *Func, b *Builder, x *Value) {
			blk := &Block{}
			b.In(blk, func() { b.Aten("relu", nil, x); b.Yield() })
			b.Node(OpFused, Attrs{}, []*Block{blk}, nil)
			b.Return()
		})},
		{RuleAttrs, "does not say which function", build(func(fn *Func, b *Builder, x *Value) { b.Aten("", nil, x); b.Return() })},
	} {
		errs := Verify(c.f)
		require.NotEmpty(t, errs, c.want)
		var v *Violation
		require.ErrorAs(t, errs[0], &v)
		require.Equal(t, c.rule, v.Rule, v.Error())
		require.Contains(t, v.Error(), c.want)
		require.Contains(t, v.Error(), fmt.Sprintf("(constraint %d)", c.rule))
	}
}

// Whatever parses prints as a fixed point, and nothing panics.
func FuzzParse(f *testing.F) {
	f.Add(sampleText)
	f.Add(strings.ReplaceAll(sampleText, `[%"odd quote"]`, `["q"]`))
	files, _ := filepath.Glob("../testdata/hostile/ir/*.gtir")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := ParseString("fuzz", text)
		if err != nil {
			_ = err.Error()
			return
		}
		for _, fn := range fs {
			once := fn.String()
			again, err := ParseFunc(once)
			if err != nil {
				t.Fatalf("printed text does not parse: %v\n%s", err, once)
			}
			if twice := again.String(); twice != once {
				t.Fatalf("not a fixed point:\n%s\n%s", once, twice)
			}
		}
	})
}
