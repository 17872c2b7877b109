package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// good is a small module that is right.
const good = `.version 7.0
.target sm_80
.address_size 64
.const .align 8 .u64 table[2] = {1, -2};
.visible .entry scale(
	.param .u64 scale_param_0,
	.param .u64 .ptr .global .align 4 scale_param_1
)
.maxntid 256, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<5>;
	.shared .align 4 .b8 tile[64];
	ld.param.u64 %rd1, [scale_param_0];
	mov.u32 %r1, %tid.x; // a comment
	setp.ge.u32 %p1, %r1, 100;
	@%p1 bra $L__BB0_2;
	cvt.u64.u32 %rd2, %r1;
	shl.b64 %rd3, %rd2, 2;
	add.s64 %rd4, %rd1, %rd3;
	ld.global.f32 %f1, [%rd4+8];
	mul.rn.f32 %f2, %f1, 0f40000000;
	add.rn.f32 %f3, %f2, %f1;
	st.shared.f32 [tile+4], %f3;
	bar.sync 0;
	{ .reg .b32 tmp; mov.b64 {tmp, %r2}, %rd4; }
	st.global.f32 [%rd4], %f3;
$L__BB0_2:
	ret;
}
`

func TestGoodModule(t *testing.T) {
	m, err := Parse(good)
	require.NoError(t, err)
	require.NoError(t, m.Verify())
	require.Equal(t, "7.0 sm_80 64", strings.Join([]string{m.Version, m.Target, "64"}, " "))
	e := m.Entries[0]
	require.Equal(t, "scale", e.Name)
	require.Equal(t, []Param{{"scale_param_0", "u64"}, {"scale_param_1", "u64"}}, e.Params)
	require.Equal(t, []int{256, 1, 1}, e.MaxTID)
	require.Equal(t, len(e.Code)-1, e.Labels["$L__BB0_2"])
	require.Equal(t, Instr{Line: 19, Guard: "%p1", Op: "bra", Args: []Operand{{Kind: Symbol, Name: "$L__BB0_2"}}}, e.Code[3])
	require.Equal(t, []string{"1", "-2"}, m.Vars[0].Init)
}

// Each case changes one thing in the good module and gives the message, line number included.
func TestWrongModules(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no version", ".version 7.0\n", "\n", "line 1: .version is missing"},
		{"no target", ".target sm_80\n", "\n", "line 1: .target is missing"},
		{"no address size", ".address_size 64\n", "\n", "line 1: .address_size is missing"},
		{"32-bit addresses", "size 64", "size 32", "line 1: .address_size is 32, not 64"},
		{"old version", "7.0", "6.3", "line 1: .target sm_80 needs .version 7.0, not 6.3"},
		{"odd version", "7.0", "seven", "line 1: .version seven is not a version"},
		{"unknown target", "sm_80", "sm_81", "line 1: .target sm_81 is not known"},
		{"undeclared register", "%f3, %f2, %f1", "%f3, %f2, %f9", "line 25: add.rn.f32: operand 3: register %f9 is not declared"},
		{"float register in integer op", "add.s64 %rd4, %rd1", "add.s32 %r3, %f1", "line 22: add.s32: operand 2: register %f1 is .f32, expected .s32"},
		{"narrow register", "add.s64 %rd4, %rd1", "add.s64 %rd4, %r1", "line 22: add.s64: operand 2: register %r1 is .b32, expected .s64"},
		{"predicate expected", "setp.ge.u32 %p1", "setp.ge.u32 %r3", "line 18: setp.ge.u32: operand 1: register %r3 is .b32, expected .pred"},
		{"guard is no predicate", "@%p1 bra", "@%r1 bra", "line 19: guard %r1 of bra is not a declared predicate register"},
		{"missing label", "bra $L__BB0_2", "bra $L__BB0_3", "line 19: bra: operand 1: there is no label $L__BB0_3 in entry scale"},
		{"label twice", "bar.sync 0;", "$L__BB0_2: bar.sync 0;", "line 30: label $L__BB0_2 is defined twice"},
		{"register twice", ".b64 %rd<5>", ".b64 %r<5>", "line 14: register %r0 is declared twice"},
		{"extern variable", ".const", ".extern .const", "line 4: unresolved .extern table"},
		{"extern function", ".const", ".extern .func (.param .b64 r) fmod (.param .b64 x);\n.const", "line 4: unresolved .extern fmod"},
		{"call", "bar.sync 0;", "call.uni (%f1), fmodf, (%f2);", "line 27: call.uni of fmodf: kernels call nothing"},
		{"no ret", "ret;", "bra.uni $L__BB0_2;", "line 5: entry scale has no ret"},
		{"runs off the end", "ret;", "ret; add.s64 %rd4, %rd1, %rd3;", "line 31: entry scale does not end in ret: control runs off its end"},
		{"guarded ret", "ret;", "@%p1 ret;", "line 31: entry scale does not end in ret: control runs off its end"},
		{"label at the end", "ret;\n", "ret;\nend:\n", "line 5: entry scale: nothing follows label end"},
		{"unknown instruction", "bar.sync 0", "mul.hi.s32 %r1, %r2, %r3", "line 27: instruction mul.hi.s32 is not one that gtc's kernels use"},
		{"too few operands", "%f3, %f2, %f1", "%f3, %f2", "line 25: add.rn.f32 takes 3 operands, got 2"},
		{"approximate", "mul.rn.f32 %f2, %f1, 0f40000000", "rcp.approx.f32 %f2, %f1", "line 24: rcp.approx.f32: approximate"},
		{"full range division", "mul.rn.f32", "div.full.f32", "line 24: div.full.f32: approximate"},
		{"flush to zero", "add.rn.f32", "add.rn.ftz.f32", "line 25: add.rn.ftz.f32: flushes subnormals to zero"},
		{"fused", "add.rn.f32 %f3", "fma.rn.f32 %f3, %f1", "line 25: fma.rn.f32: fused multiply-add: the product must be rounded before it is added"},
		{"may be fused", "add.rn.f32", "add.f32", "line 25: add.f32: without .rn it may be contracted to a fused multiply-add"},
		{"minimum", "add.rn.f32", "min.f32", "line 25: min.f32: drops NaN"},
		{"half instruction", "add.rn.f32", "add.rn.f16", "line 25: add.rn.f16: half types are converted by integer arithmetic, so that every architecture has them"},
		{"missing parameter", "[scale_param_0]", "[scale_param_2]", "line 16: ld.param.u64: operand 2: entry scale has no parameter scale_param_2"},
		{"beyond a parameter", "[scale_param_0]", "[scale_param_0+4]", "line 16: ld.param.u64: operand 2: reads beyond parameter scale_param_0"},
		{"outside of shared memory", "tile+4", "tile+64", "line 26: st.shared.f32: operand 1: [tile+64] is outside of the variable"},
		{"misaligned", "tile+4", "tile+2", "line 26: st.shared.f32: operand 1: [tile+2] is not aligned to 4 bytes"},
		{"wrong space", "st.shared.f32 [tile+4]", "st.global.f32 [tile+4]", "line 26: st.global.f32: operand 1: variable tile is in .shared"},
		{"missing variable", "tile+4", "tail+4", "line 26: st.shared.f32: operand 1: there is no variable tail"},
		{"32-bit address", "[%rd4+8]", "[%r1+8]", "line 23: ld.global.f32: operand 2: register %r1 is .b32, expected .b64"},
		{"no brackets", "[%rd4+8]", "%rd4", "line 23: ld.global.f32: operand 2: expected an address in [ ]"},
		{"integer for float", "0f40000000", "2", "line 24: mul.rn.f32: operand 3: the integer 2 where a float is expected"},
		{"double for float", "0f40000000", "0d4000000000000000", "line 24: mul.rn.f32: operand 3: an f64 number where f32 is expected"},
		{"number too large", "%r1, 100", "%r1, 4294967296", "line 18: setp.ge.u32: operand 3: 4294967296 does not fit 32 bits"},
		{"store to a number", "add.rn.f32 %f3", "add.rn.f32 0f00000000", "line 25: add.rn.f32: operand 1: the result must be a register"},
		{"special register", "%tid.x", "%clock.x", "line 17: mov.u32: operand 2: unexpected special register %clock.x"},
		{"too much shared memory", "tile[64]", "tile[65536]", "line 5: entry scale needs 65536 bytes of shared memory; there are 49152"},
		{"too many initial values", "{1, -2}", "{1, -2, 3}", "line 4: variable table has 2 elements and 3 initial values"},
		{"device function", ".visible .entry scale(", ".visible .func scale(", "line 5: .func: device functions are not used here; kernels call nothing"},
		{"no closing brace", "ret;\n}", "ret;\n", "line 31: entry scale has no closing brace"},
		{"missing semicolon", "bar.sync 0;", "bar.sync 0", `line 28: expected ",", got "{"`},
		{"odd character", "bar.sync 0;", "bar.sync #0;", "line 27: unexpected character '#'"},
		{"local register outside of its scope", "st.global.f32 [%rd4], %f3", "mov.b32 %r3, tmp", "line 29: mov.b32: operand 2: there is no variable tmp"},
		{"entry twice", ".const", ".visible .entry scale() { ret; }\n.const", "line 6: scale is declared twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(good, c.old), "the text to change")
			err := Check(strings.Replace(good, c.old, c.new, 1))
			require.Error(t, err)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

// Text that is cut within the kernel is an error, and text that is cut anywhere is no panic.
func TestTruncated(t *testing.T) {
	for i := range good {
		if err := Check(good[:i]); i > strings.Index(good, ".visible") && i < len(good)-2 {
			require.Error(t, err, "cut at %d", i)
		}
	}
}
