package cpu

import (
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// Some operations are loops over one element's bits. They are functions in LLVM text, added to a module that calls them.

// helper calls one of the functions below.
func (f *fn) helper(name string, ret types.Type, args ...value.Value) value.Value {
	h := f.m.helpers[name]
	if h == nil {
		params := make([]*ir.Param, len(args))
		for i, a := range args {
			params[i] = ir.NewParam("", a.Type())
		}
		h = ir.NewFunc(name, ret, params...) // not added to the module: its text is
		f.m.helpers[name] = h
	}
	return f.b.NewCall(h, args...)
}

var helperTexts = map[string]string{
	"gtc.gcd": gcdText,
	"gtc.frem.f32": strings.NewReplacer("FLOAT", "float", "INT", "i32", "NAME", "f32", "ABS", "2147483647", "INF", "2139095040",
		"MANT", "23", "FRAC", "8388607", "ONE", "8388608", "STEP", "40", "LIMIT", "24").Replace(fremText),
	"gtc.frem.f64": strings.NewReplacer("FLOAT", "double", "INT", "i64", "NAME", "f64", "ABS", "9223372036854775807", "INF", "9218868437227405312",
		"MANT", "52", "FRAC", "4503599627370495", "ONE", "4503599627370496", "STEP", "11", "LIMIT", "53").Replace(fremText),
}

// gcdText is Euclid's algorithm on magnitudes.
const gcdText = `
define internal i64 @gtc.gcd(i64 %x, i64 %y) noinline nounwind {
entry:
  %nx = sub i64 0, %x
  %ny = sub i64 0, %y
  %sx = icmp slt i64 %x, 0
  %sy = icmp slt i64 %y, 0
  %ax = select i1 %sx, i64 %nx, i64 %x
  %ay = select i1 %sy, i64 %ny, i64 %y
  br label %head
head:
  %a = phi i64 [ %ax, %entry ], [ %b, %loop ]
  %b = phi i64 [ %ay, %entry ], [ %r, %loop ]
  %done = icmp eq i64 %b, 0
  br i1 %done, label %exit, label %loop
loop:
  %r = urem i64 %a, %b
  br label %head
exit:
  ret i64 %a
}
`

// fremText is C's fmod, exactly: with x = mx*2^ex and y = my*2^ey in integers, the remainder is ((mx * 2^(ex-ey)) mod my) * 2^ey,
// and the power is worked off STEP bits at a time, as many as fit above a mantissa in 64 bits. The last product is exact.
const fremText = `
define internal FLOAT @gtc.frem.NAME(FLOAT %x, FLOAT %y) noinline nounwind {
entry:
  %bx = bitcast FLOAT %x to INT
  %by = bitcast FLOAT %y to INT
  %ax = and INT %bx, ABS
  %ay = and INT %by, ABS
  %sign = xor INT %bx, %ax
  %ynan = icmp ugt INT %ay, INF
  %yzero = icmp eq INT %ay, 0
  %xbad = icmp uge INT %ax, INF
  %bad1 = or i1 %ynan, %yzero
  %bad = or i1 %bad1, %xbad
  br i1 %bad, label %nan, label %compare
nan:
  %p = fmul FLOAT %x, %y
  %q = fdiv FLOAT %p, %p
  ret FLOAT %q
compare:
  %small = icmp ult INT %ax, %ay
  br i1 %small, label %same, label %divide
same:
  ret FLOAT %x
divide:
  %ex0 = lshr INT %ax, MANT
  %ey0 = lshr INT %ay, MANT
  %fx = and INT %ax, FRAC
  %fy = and INT %ay, FRAC
  %nx = or INT %fx, ONE
  %ny = or INT %fy, ONE
  %subx = icmp eq INT %ex0, 0
  %suby = icmp eq INT %ey0, 0
  %mx0 = select i1 %subx, INT %fx, INT %nx
  %my0 = select i1 %suby, INT %fy, INT %ny
  %ex = select i1 %subx, INT 1, INT %ex0
  %ey = select i1 %suby, INT 1, INT %ey0
  %n0 = sub INT %ex, %ey
  %mx = call i64 @gtc.frem.NAME.wide(INT %mx0)
  %my = call i64 @gtc.frem.NAME.wide(INT %my0)
  %n = call i64 @gtc.frem.NAME.wide(INT %n0)
  %r0 = urem i64 %mx, %my
  br label %head
head:
  %left = phi i64 [ %n, %divide ], [ %left2, %loop ]
  %r = phi i64 [ %r0, %divide ], [ %r2, %loop ]
  %more = icmp ne i64 %left, 0
  br i1 %more, label %loop, label %scale
loop:
  %few = icmp ult i64 %left, STEP
  %by_ = select i1 %few, i64 %left, i64 STEP
  %left2 = sub i64 %left, %by_
  %up = shl i64 %r, %by_
  %r2 = urem i64 %up, %my
  br label %head
scale:
  %v = uitofp i64 %r to FLOAT
  %e1 = sub INT %ey, MANT
  %pnorm = shl INT %e1, MANT
  %e2 = sub INT %ey, 1
  %e2ok = icmp ult INT %e2, MANT
  %e2safe = select i1 %e2ok, INT %e2, INT 0
  %psub = shl INT 1, %e2safe
  %isnorm = icmp uge INT %ey, LIMIT
  %pbits = select i1 %isnorm, INT %pnorm, INT %psub
  %pow = bitcast INT %pbits to FLOAT
  %abs = fmul FLOAT %v, %pow
  %babs = bitcast FLOAT %abs to INT
  %bres = or INT %babs, %sign
  %res = bitcast INT %bres to FLOAT
  ret FLOAT %res
}
define internal i64 @gtc.frem.NAME.wide(INT %x) nounwind {
  %w = zext INT %x to i128
  %r = trunc i128 %w to i64
  ret i64 %r
}
`

// text is the module's final text, helpers included.
func (m *module) text() string {
	var sb strings.Builder
	sb.WriteString(m.String())
	for _, name := range []string{"gtc.gcd", "gtc.frem.f32", "gtc.frem.f64"} {
		if m.helpers[name] != nil {
			sb.WriteString(helperTexts[name])
		}
	}
	return sb.String()
}
