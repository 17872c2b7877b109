package ptx

import (
	"fmt"
	"strings"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Operations that are loops over the bits of one element. They are written out where they occur, since a call in PTX costs more than
// its code. In the texts, a name that starts with % and ends with # is local to one expansion.

// expand writes a text; result is the local name of its value. subst are pairs of a word of the text and what stands for it.
func (l *lane) expand(text, result string, subst ...string) string {
	l.count++
	id := fmt.Sprintf("_%d", l.count)
	text = strings.NewReplacer(subst...).Replace(text)
	l.text = append(l.text, strings.ReplaceAll(text, "#", id)...)
	l.block = "exit" + id
	return "%" + result + id
}

// gcd is Euclid's algorithm on magnitudes.
func (l *lane) gcd(x, y string) string {
	l.m.declare("declare i64 @llvm.abs.i64(i64, i1)")
	return l.expand(`  br label %start#
start#:
  %x# = call i64 @llvm.abs.i64(i64 X, i1 false)
  %y# = call i64 @llvm.abs.i64(i64 Y, i1 false)
  br label %head#
head#:
  %a# = phi i64 [ %x#, %start# ], [ %b#, %loop# ]
  %b# = phi i64 [ %y#, %start# ], [ %r#, %loop# ]
  %more# = icmp ne i64 %b#, 0
  br i1 %more#, label %loop#, label %exit#
loop#:
  %r# = urem i64 %a#, %b#
  br label %head#
exit#:
`, "a", "X", x, "Y", y)
}

// frem is the exact remainder of x / y with the sign of x. With x = mx·2^ex and y = my·2^ey in integers it is ((mx·2^(ex-ey)) mod my)·2^ey;
// the power is worked off STEP bits at a time, as many as fit above a mantissa in 64 bits. The remainder is then shifted into
// place: it has at most y's bits, so nothing is rounded.
func (l *lane) frem(d dtype.DType, x, y string) string {
	l.m.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
	l.m.declare("declare i64 @llvm.umin.i64(i64, i64)")
	l.m.declare("declare i64 @llvm.smax.i64(i64, i64)")
	subst := []string{"FLOAT", "double", "WORD", "i64", "MANT", "52", "STEP", "11", "SPARE", "11", "NAN", constant("double", 0x7ff8<<48),
		"SIGN", fmt.Sprint(int64(-1 << 63)), "INF", fmt.Sprint(0x7ff << 52), "ONE", fmt.Sprint(1 << 52), "FRAC", fmt.Sprint(1<<52 - 1),
		"WIDE_S", "add i64 0, %s#", "WIDE_X", "add i64 0, %ax0#", "WIDE_Y", "add i64 0, %ay0#", "SLIM", "or i64 0, %abs#"}
	if d == dtype.F32 {
		subst = []string{"FLOAT", "float", "WORD", "i32", "MANT", "23", "STEP", "40", "SPARE", "40", "NAN", constant("float", 0x7fc0<<16),
			"SIGN", fmt.Sprint(int32(-1 << 31)), "INF", fmt.Sprint(0xff << 23), "ONE", fmt.Sprint(1 << 23), "FRAC", fmt.Sprint(1<<23 - 1),
			"WIDE_S", "zext i32 %s# to i64", "WIDE_X", "zext i32 %ax0# to i64", "WIDE_Y", "zext i32 %ay0# to i64", "SLIM", "trunc i64 %abs# to i32"}
	}
	return l.expand(`  br label %start#
start#:
  %bx# = bitcast FLOAT LEFT to WORD
  %by# = bitcast FLOAT RIGHT to WORD
  %s# = and WORD %bx#, SIGN
  %ax0# = xor WORD %bx#, %s#
  %sy# = and WORD %by#, SIGN
  %ay0# = xor WORD %by#, %sy#
  %ax# = WIDE_X
  %ay# = WIDE_Y
  %zero# = icmp eq i64 %ay#, 0
  %ynan# = icmp ugt i64 %ay#, INF
  %xbad# = icmp uge i64 %ax#, INF
  %bad0# = or i1 %zero#, %ynan#
  %bad# = or i1 %bad0#, %xbad#
  br i1 %bad#, label %exit#, label %compare#
compare#:
  %small# = icmp ult i64 %ax#, %ay#
  br i1 %small#, label %exit#, label %divide#
divide#:
  %ex0# = lshr i64 %ax#, MANT
  %ey0# = lshr i64 %ay#, MANT
  %ex# = call i64 @llvm.smax.i64(i64 %ex0#, i64 1)
  %ey# = call i64 @llvm.smax.i64(i64 %ey0#, i64 1)
  %fx# = and i64 %ax#, FRAC
  %fy# = and i64 %ay#, FRAC
  %nx# = icmp ne i64 %ex0#, 0
  %ny# = icmp ne i64 %ey0#, 0
  %ix# = select i1 %nx#, i64 ONE, i64 0
  %iy# = select i1 %ny#, i64 ONE, i64 0
  %mx# = or i64 %fx#, %ix#
  %my# = or i64 %fy#, %iy#
  %n# = sub i64 %ex#, %ey#
  %first# = urem i64 %mx#, %my#
  br label %head#
head#:
  %left# = phi i64 [ %n#, %divide# ], [ %rest#, %loop# ]
  %r# = phi i64 [ %first#, %divide# ], [ %next#, %loop# ]
  %more# = icmp ne i64 %left#, 0
  br i1 %more#, label %loop#, label %pack#
loop#:
  %k# = call i64 @llvm.umin.i64(i64 %left#, i64 STEP)
  %rest# = sub i64 %left#, %k#
  %up# = shl i64 %r#, %k#
  %next# = urem i64 %up#, %my#
  br label %head#
pack#:
  %lz# = call i64 @llvm.ctlz.i64(i64 %r#, i1 false)
  %shift0# = sub i64 %lz#, SPARE
  %e# = sub i64 %ey#, %shift0#
  %isnorm# = icmp sgt i64 %e#, 0
  %down# = sub i64 %ey#, 1
  %shift# = select i1 %isnorm#, i64 %shift0#, i64 %down#
  %m# = shl i64 %r#, %shift#
  %frac# = and i64 %m#, FRAC
  %ebits# = shl i64 %e#, MANT
  %norm# = or i64 %frac#, %ebits#
  %abs1# = select i1 %isnorm#, i64 %norm#, i64 %m#
  %none# = icmp eq i64 %r#, 0
  %abs# = select i1 %none#, i64 0, i64 %abs1#
  %slim# = SLIM
  %bits# = or WORD %slim#, %s#
  %value# = bitcast WORD %bits# to FLOAT
  br label %exit#
exit#:
  %out# = phi FLOAT [ NAN, %start# ], [ LEFT, %compare# ], [ %value#, %pack# ]
`, "out", append(subst, "LEFT", x, "RIGHT", y)...)
}
