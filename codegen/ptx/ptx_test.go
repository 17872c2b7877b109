package ptx

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/codegen/ptx/check"
	"github.com/gtc-project/gtc/ir"
	"github.com/gtc-project/gtc/ir/dtype"
	"github.com/gtc-project/gtc/runtime/llvm"
)

var update = flag.Bool("update", false, "write the expected texts of testdata/codegen/ptx")

// needLLVM skips a test where LLVM 19 is missing.
func needLLVM(t testing.TB) {
	t.Helper()
	l, err := llvm.Load()
	if err != nil {
		t.Skip("PTX is made by LLVM 19: ", err)
	}
	if l.Version().Major < 19 {
		t.Skipf("PTX is made by LLVM 19; found version %v", l.Version())
	}
}

func parse(t testing.TB, text string) *ir.Func {
	t.Helper()
	f, err := ir.ParseFunc(text)
	require.NoError(t, err)
	return f
}

// testdata/codegen/ptx holds functions (.gtir) and the manifests and kernels that they become (.ptx), which compute what the reference
// evaluator computes.
func TestText(t *testing.T) {
	needLLVM(t)
	files, err := filepath.Glob("../../testdata/codegen/ptx/*.gtir")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			fs, err := ir.ParseFile(file)
			require.NoError(t, err)
			text, err := Module(fs[0], "sm_80")
			require.NoError(t, err)
			require.NoError(t, check.Check(text))
			golden := strings.TrimSuffix(file, ".gtir") + ".ptx"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			// LLVM's instruction selection may differ between patch versions; the manifest and the signatures may not.
			require.Equal(t, signatures(string(want)), signatures(text), "run the test with -update to accept")
			checkFunc(t, fs[0].String(), rand.New(rand.NewPCG(9, 10)))
		})
	}
}

// signatures keeps comments, directives and parameters.
func signatures(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if s := strings.TrimSpace(line); strings.HasPrefix(line, "//") || strings.HasPrefix(s, ".version") || strings.HasPrefix(s, ".target") ||
			strings.HasPrefix(s, ".visible") || strings.HasPrefix(s, ".param") || strings.HasPrefix(s, ".maxntid") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// Elementwise kernels for every sort of operand, and the data movements and generators that are made of them.
func TestLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, text := range []string{
		// a transposed, a broadcast, a reversed and a sliced operand
		`func @f(%x: tensor<f32[5,7]>, %y: tensor<f32[7,5]>, %z: tensor<f32[7]>) {
			%a = permute(%y, [1,0]) %b = broadcast(%z, [5,7]) %c = flip(%x, [0,1])
			%s = add(%x, %a) %p = mul(%s, %b) %q = sub(%p, %c) return %q }`,
		// one operand read twice, a scalar operand, a literal
		`func @f(%x: tensor<f64[40]>, %s: tensor<f64[]>) {
			%b = broadcast(%s, [40]) %l = full([40], 0.5, dtype.f64) %p = mul(%x, %b) %q = add(%p, %l) %r = mul(%q, %x) return %r, %l }`,
		// several results of one group, one of them a reduction of another, one a view
		`func @f(%x: tensor<bf16[4,6]>, %y: tensor<bf16[4,6]>) {
			%a, %b, %c, %d = fused.group(%x, %y) (%p: tensor<bf16[4,6]>, %q: tensor<bf16[4,6]>) {
				%s = add(%p, %q) %e = exp(%s) %m = amax(%s, [1], true) %n = sum(%e, [0,1], false) yield %s, %e, %m, %n }
			%v = permute(%b, [1,0]) return %a, %v, %c, %d }`,
		// a reduction of an elementwise result within a group, whose value is used there
		`func @f(%x: tensor<f32[4,100]>) {
			%a, %b = fused.softmax(%x) (%p: tensor<f32[4,100]>) {
				%m = amax(%p, [1], true) %n = broadcast(%m, [4,100]) %s = sub(%p, %n) %e = exp(%s) %t = sum(%e, [1], true)
				%u = broadcast(%t, [4,100]) %o = div(%e, %u) yield %o, %m }
			return %a, %b }`,
		`func @f(%x: tensor<f16[2,3]>, %y: tensor<f16[2,2]>) { %p = pad(%x, [1,0], [0,2], 1.5) %l = list(%x,%y,%x) %c = concat(%l, 1) return %p, %c }`,
		`func @f(%x: tensor<u8[3,4]>) { %u = unslice(%x, 1, 1, 2, 9) %t = permute(%x, [1,0]) %r = reshape(%t, [2,6]) %n = bitwise_not(%r) return %u, %n }`,
		`func @f(%x: tensor<f32[6]>) { %i = iota(6, dtype.i64) %f = iota(6, dtype.f32) %j = flip(%i, [0]) %k = convert(%j, dtype.f32) %s = add(%x, %k)
			%t = add(%s, %f) %m = argmax(%j, 0, false) return %t, %m, %i }`,
		`func @f(%x: tensor<i32[2,3]>) { %c = add(%x, i32[2,3]{1,-2,3,-4,5,-6}) %s = broadcast(i32[]{7}, [2,3]) %d = mul(%c, %s) return %d }`,
		`func @f(%x: tensor<f32[2,3,4]>) { %s = sum_to(%x, [3,1]) %z = slice(%x, 0, 1, 1, 1) %e = neg(%z) %t = sum(%e, [0], false) return %s, %e, %t }`,
		`func @f(%x: tensor<bool[5,3]>) { %m = amax(%x, [1], false) %n = amin(%x, [0], false) %a = logical_not(%x) return %m, %n, %a }`,
		`func @f(%x: tensor<f32[2,3]>) { return %x }`,
	} {
		checkFunc(t, text, r)
	}
}

// A group of elementwise nodes is one kernel, and equal work on other sizes is the same kernel.
func TestKernelsAreShared(t *testing.T) {
	needLLVM(t)
	p, err := Compile(parse(t, `func @f(%x: tensor<f32[40]>, %y: tensor<f32[7]>) {
		%a = fused.k(%x) (%p: tensor<f32[40]>) { %n = neg(%p) %m = mul(%n, %p) yield %m }
		%b = fused.k(%y) (%q: tensor<f32[7]>) { %o = neg(%q) %r = mul(%o, %q) yield %r }
		return %a, %b }`), "")
	require.NoError(t, err)
	require.Len(t, p.Launches, 2)
	m, err := check.Parse(p.Text)
	require.NoError(t, err)
	require.Len(t, m.Entries, 1)
	require.Equal(t, "k_0", m.Entries[0].Name)
}

// A group with more operands than a kernel takes becomes several kernels, and many axes are no trouble.
func TestLargeGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var params, args, inner, body []string
	sum := "%e0"
	for i := range 90 {
		params = append(params, fmt.Sprintf("%%p%d: tensor<f32[2,1,3]>", i))
		args = append(args, fmt.Sprintf("%%p%d", i))
		inner = append(inner, fmt.Sprintf("%%q%d: tensor<f32[2,1,3]>", i))
		body = append(body, fmt.Sprintf("%%w%d = permute(%%q%d, [2,0,1]) %%e%d = neg(%%w%d)", i, i, i, i))
		if i > 0 {
			body = append(body, fmt.Sprintf("%%s%d = add(%s, %%e%d)", i, sum, i))
			sum = fmt.Sprintf("%%s%d", i)
		}
	}
	p := checkFunc(t, fmt.Sprintf("func @f(%s) { %%a, %%b, %%c = fused.g(%s) (%s) {\n%s\n%%m = sum(%s, [0], false) yield %s, %%e3, %%m } return %%a, %%b, %%c }",
		strings.Join(params, ", "), strings.Join(args, ", "), strings.Join(inner, ", "), strings.Join(body, "\n"), sum, sum), r)
	require.Greater(t, len(p.Launches), 2)

	shape := strings.TrimSuffix(strings.Repeat("2,1,", 12), ",")
	var order []string
	for i := range 24 {
		order = append(order, fmt.Sprint((i*7)%24))
	}
	checkFunc(t, fmt.Sprintf(`func @f(%%x: tensor<i8[%s]>) { %%y = permute(%%x, [%s]) %%z = flip(%%y, [0,3,6,9,12]) %%s = add(%%z, %%z)
		%%b = broadcast(i8[%s]{%s}, [%s]) %%t = add(%%s, %%b) %%u = sum(%%t, [1,4,7,20], false) return %%t, %%u }`, shape, strings.Join(order, ","), strings.Repeat("1,", 23)+"1", "3", shape2(order)), r)
}

// shape2 is the shape of 2,1,2,1,… permuted.
func shape2(order []string) string {
	var out []string
	for _, o := range order {
		n := "2"
		if (o[len(o)-1]-'0')%2 == 1 {
			n = "1"
		}
		out = append(out, n)
	}
	return strings.Join(out, ",")
}

// Division by zero sets the fault word.
func TestFault(t *testing.T) {
	needLLVM(t)
	p, err := Compile(parse(t, `func @f(%x: tensor<i64[3]>, %y: tensor<i64[3]>) { %q = floor_div(%x, %y) return %q }`), "")
	require.NoError(t, err)
	require.True(t, p.Fault)
	x, y := i64s(3, 4, -5), i64s(2, 0, 1)
	_, fault := runFunc(t, p, []*ir.Array{x, y})
	require.Equal(t, uint64(1), fault)
	got, fault := runFunc(t, p, []*ir.Array{x, i64s(2, 3, -2)})
	require.Zero(t, fault)
	require.Equal(t, "i64[3]{1,1,2}", ir.FormatDatum(got[0]))
}

// What has no kernel is reported at once, with positions; what depends on it is not.
func TestUnsupported(t *testing.T) {
	f := parse(t, `func @net(%x: tensor<f32[3,4]>, %i: tensor<i64[2]>, %c: bool) {
		%s, %o = sort(%x, 1, false, false) @ "net.py":3:9
		%n = neg(%s)
		%t = take(%x, %i) @ "net.py":4:5
		%v = if(%c) { yield %n } else { yield %x } @ "net.py":5:1
		%k = rng() @ "net.py":6:7
		%d = uniform([3,4], %k, dtype.f32) @ "net.py":6:7
		%z = nonzero(%x) @ "net.py":7:2
		%b = cumsum(%v, 1) @ "net.py":8:3
		return %n, %t, %v, %d
	}`)
	_, err := Module(f, "sm_80")
	require.EqualError(t, err, `net uses what --target=cuda has no kernel for:
  net.py:3:9: sort of tensor<f32[3,4]>
  net.py:4:5: take of tensor<f32[3,4]>
  net.py:5:1: if
  net.py:6:7: rng
  net.py:6:7: uniform: it depends on a number that is only known at run time
  net.py:7:2: nonzero of tensor<f32[3,4]>: its result tensor<i64[?,2]> has sizes that are only known at run time
  net.py:8:3: cumsum of tensor<f32[3,4]>
use --target=cpu for this function`)
}

func TestSymbolicSizes(t *testing.T) {
	_, err := Module(parse(t, `func @f(%x: tensor<f32[N,4]>) { %y = neg(%x) return %y }`), "sm_80")
	require.EqualError(t, err, "parameter x has type tensor<f32[N,4]>: CUDA modules need every size, give --input x=f32[2,3] or the like")
}

// Results in lists and tuples are flattened, and numbers are results, too.
func TestNestedResults(t *testing.T) {
	needLLVM(t)
	p, err := Compile(parse(t, `func @f(%x: tensor<f32[2]>) { %y = neg(%x) %l = list(%x, %y) %t = tuple(%l, 3) return %t }`), "")
	require.NoError(t, err)
	require.Len(t, p.Results, 3)
	require.Equal(t, int64(3), p.Results[2])
	require.Contains(t, p.Text, "//   1: $0 f32[2] strides [1] offset 0\n//   2: 3\n")
}

// Every architecture that LLVM knows gets the PTX version that it needs; others are an error.
func TestArch(t *testing.T) {
	needLLVM(t)
	f := parse(t, `func @f(%x: tensor<bf16[4]>) { %y = exp(%x) %s = sum(%y, [0], false) return %s }`)
	for _, arch := range Archs() {
		text, err := Module(f, arch)
		require.NoError(t, err)
		m, err := check.Parse(text)
		require.NoError(t, err)
		require.NoError(t, m.Verify(), arch)
		require.Equal(t, arch, m.Target)
	}
	_, err := Module(f, "sm_81")
	require.EqualError(t, err, `--arch "sm_81" is no CUDA architecture that is known here; the architectures are sm_90a, sm_90, sm_89, sm_87, sm_86, sm_80, sm_75, sm_72, sm_70, sm_62, sm_61, sm_60, sm_53, sm_52, sm_50`)
}

// Names of groups and parameters become symbols that PTX takes, whatever they hold.
func TestNames(t *testing.T) {
	needLLVM(t)
	text, err := Module(parse(t, `func @"odd name"(%"x\ny": tensor<f32[2]>) {
		%a = fused."1 odd-name"(%"x\ny") (%p: tensor<f32[2]>) { %n = neg(%p) yield %n } return %a, "a\nb" }`), "")
	require.NoError(t, err)
	require.NoError(t, check.Check(text))
}

func i64s(vals ...int64) *ir.Array {
	a := ir.NewArray(dtype.I64, len(vals))
	for i, v := range vals {
		a.SetInt(i, v)
	}
	return a
}
