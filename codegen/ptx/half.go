package ptx

import "github.com/gtc-project/gtc/ir/dtype"

// Half types are 16-bit integers in memory and f32 in registers. The conversions are integer arithmetic, exact, with subnormals, so that
// no arch needs f16 or bf16 instructions.

// widen turns half bits (i16) into the float that they stand for.
func (l *lane) widen(d dtype.DType, h string) string {
	x := l.val("zext i16 %s to i32", h)
	if d == dtype.BF16 {
		return l.val("bitcast i32 %s to float", l.val("shl i32 %s, 16", x))
	}
	sign := l.val("shl i32 %s, 16", l.val("and i32 %s, 32768", x))
	abs := l.val("and i32 %s, 32767", x)
	shifted := l.val("shl i32 %s, 13", abs)
	normal := l.val("add i32 %s, %d", shifted, (127-15)<<23)
	special := l.val("or i32 %s, %d", shifted, 0xff<<23)
	// A subnormal is an integer multiple of 2^-24.
	count := l.val("uitofp i32 %s to float", abs)
	tiny := l.val("bitcast float %s to i32", l.val("fmul float %s, %s", count, floatConst("float", 0x1p-24)))
	v := l.choose(l.val("icmp ult i32 %s, %d", abs, 1<<10), "i32", tiny, normal)
	v = l.choose(l.val("icmp uge i32 %s, %d", abs, 0x1f<<10), "i32", special, v)
	return l.val("bitcast i32 %s to float", l.val("or i32 %s, %s", v, sign))
}

// narrow rounds a float to half bits (i16), ties to even.
func (l *lane) narrow(d dtype.DType, x string) string {
	bits := l.val("bitcast float %s to i32", x)
	abs := l.val("and i32 %s, %d", bits, 0x7fffffff)
	sign := l.val("and i32 %s, 32768", l.val("lshr i32 %s, 16", bits))
	isNaN := l.val("icmp ugt i32 %s, %d", abs, 0x7f800000)
	var h string
	if d == dtype.BF16 {
		h = l.choose(isNaN, "i32", "32704", l.roundShift(abs, 16)) // 0x7fc0
	} else {
		h = l.narrowF16(abs, isNaN)
	}
	return l.val("trunc i32 %s to i16", l.val("or i32 %s, %s", h, sign))
}

// narrowF16 gives the f16 bits of a magnitude.
func (l *lane) narrowF16(abs, isNaN string) string {
	const (
		minNormal = 0x38800000 // 2^-14
		overflow  = 0x477ff000 // 65520, halfway to 2^16
	)
	normal := l.roundShift(l.val("sub i32 %s, %d", abs, (127-15)<<23), 13)
	// Below 2^-14 the result counts steps of 2^-24, the last place of floats in [0.5, 1): adding 0.5 rounds to them.
	sum := l.val("fadd float %s, %s", l.val("bitcast i32 %s to float", abs), floatConst("float", 0.5))
	tiny := l.val("sub i32 %s, %d", l.val("bitcast float %s to i32", sum), 0x3f000000)
	h := l.choose(l.val("icmp ult i32 %s, %d", abs, minNormal), "i32", tiny, normal)
	h = l.choose(l.val("icmp uge i32 %s, %d", abs, overflow), "i32", "31744", h) // 0x7c00
	return l.choose(isNaN, "i32", "32256", h)                                    // 0x7e00
}

// roundShift shifts right by n and rounds to nearest, ties to even.
func (l *lane) roundShift(x string, n int) string {
	odd := l.val("and i32 %s, 1", l.val("lshr i32 %s, %d", x, n))
	bias := l.val("add i32 %s, %d", odd, 1<<(n-1)-1)
	return l.val("lshr i32 %s, %d", l.val("add i32 %s, %s", x, bias), n)
}
