package check

import "fmt"

// form is what an instruction takes: the first dests operands are results.
type form struct {
	args    []string
	dests   int
	version int // 10 times the PTX version that it needs, where that is above 4.0
}

// forms are the instructions that gtc's kernels use, with all their modifiers.
var forms = makeForms()

func makeForms() map[string]form {
	f := map[string]form{
		"ret":                 {},
		"bra":                 {args: []string{"label"}},
		"bra.uni":             {args: []string{"label"}},
		"bar.sync":            {args: []string{"number"}},
		"shfl.sync.down.b32":  {args: []string{"b32", "b32", "u32", "u32", "u32"}, dests: 1, version: 60},
		"atom.global.max.u32": {args: []string{"u32", "global u32", "u32"}, dests: 1},
		"red.global.max.u32":  {args: []string{"global u32", "u32"}},
		"cvt.rn.f32.f64":      {args: []string{"f32", "f64"}, dests: 1},
		"cvt.f64.f32":         {args: []string{"f64", "f32"}, dests: 1},
		"clz.b32":             {args: []string{"u32", "b32"}, dests: 1},
		"clz.b64":             {args: []string{"u32", "b64"}, dests: 1},
	}
	for _, bits := range []int{16, 32, 64} {
		integerForms(f, bits)
	}
	for _, t := range []string{"f32", "f64"} {
		floatForms(f, t)
	}
	for _, t := range []string{"pred", "b16", "b32", "b64"} {
		for _, op := range []string{"and", "or", "xor"} {
			f[op+"."+t] = op3(t)
		}
		f["not."+t] = op2(t)
		f["mov."+t] = op2(t)
	}
	memoryForms(f)
	return f
}

// op2 is an instruction of a result and an operand of one type, op3 of two operands.
func op2(t string) form { return form{args: []string{t, t}, dests: 1} }
func op3(t string) form { return form{args: []string{t, t, t}, dests: 1} }

func integerForms(f map[string]form, bits int) {
	b, s, u := fmt.Sprintf("b%d", bits), fmt.Sprintf("s%d", bits), fmt.Sprintf("u%d", bits)
	for _, op := range []string{"add", "sub", "mul.lo"} {
		f[op+"."+s] = op3(s)
	}
	f["mad.lo."+s] = form{args: []string{s, s, s, s}, dests: 1}
	f["neg."+s], f["abs."+s] = op2(s), op2(s)
	f["shl."+b] = form{args: []string{b, b, "u32"}, dests: 1}
	f["selp."+b] = form{args: []string{b, b, b, "pred"}, dests: 1}
	for _, t := range []string{s, u} {
		for _, op := range []string{"div", "rem", "min", "max"} {
			f[op+"."+t] = op3(t)
		}
		f["shr."+t] = form{args: []string{t, t, "u32"}, dests: 1}
		f["selp."+t] = form{args: []string{t, t, t, "pred"}, dests: 1}
		f["mov."+t] = op2(t)
		if bits > 16 {
			f["bfe."+t] = form{args: []string{t, t, "u32", "u32"}, dests: 1}
		}
		if bits < 64 {
			wide := fmt.Sprintf("%c%d", t[0], 2*bits)
			f["mul.wide."+t] = form{args: []string{wide, t, t}, dests: 1}
		}
	}
	for _, t := range []string{s, u, b} {
		for _, cmp := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
			if t[0] != 'b' || cmp == "eq" || cmp == "ne" {
				f["setp."+cmp+"."+t] = form{args: []string{"pred", t, t}, dests: 1}
			}
		}
	}
	for _, from := range []int{8, 16, 32, 64} { // an 8-bit value lies in a wider register
		for _, sign := range []string{"s", "u"} {
			src := fmt.Sprintf("%s%d", sign, from)
			for _, t := range []string{s, u, "s8", "u8"} {
				f["cvt."+t+"."+src] = form{args: []string{t + "+", src + "+"}, dests: 1}
			}
			for _, t := range []string{"f32", "f64"} {
				f["cvt.rn."+t+"."+src] = form{args: []string{t, src + "+"}, dests: 1}
			}
		}
	}
}

func floatForms(f map[string]form, t string) {
	for _, op := range []string{"add", "sub", "mul", "div"} {
		f[op+".rn."+t] = op3(t)
	}
	for _, op := range []string{"sqrt.rn", "rcp.rn", "neg", "abs", "mov"} { // neg and abs are exact, but for the sign of a NaN
		f[op+"."+t] = op2(t)
	}
	f["selp."+t] = form{args: []string{t, t, t, "pred"}, dests: 1}
	for _, mode := range []string{"rni", "rzi", "rmi", "rpi"} {
		f["cvt."+mode+"."+t+"."+t] = op2(t)
	}
	for _, i := range []string{"s32", "s64"} {
		f["cvt.rzi."+i+"."+t] = form{args: []string{i, t}, dests: 1}
	}
	for _, cmp := range []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
		f["setp."+cmp+"."+t] = form{args: []string{"pred", t, t}, dests: 1}
	}
}

func memoryForms(f map[string]form) {
	for _, t := range []string{"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"} {
		for _, space := range []string{"param", "global", "shared", "const"} {
			f["ld."+space+"."+t] = form{args: []string{t + "+", space + " " + t}, dests: 1}
		}
		for _, space := range []string{"global", "shared"} {
			f["st."+space+"."+t] = form{args: []string{space + " " + t, t + "+"}}
		}
	}
}
