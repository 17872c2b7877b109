package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/runtime/llvm"
)

// TestArch: levels include those below them; what cannot be made, or run, is refused by name.
func TestArch(t *testing.T) {
	host := llvm.Target{Triple: "x86_64-pc-linux-gnu", CPU: "znver3", Features: "+sse4.1,+avx2"}
	native, err := Arch("native", host)
	require.NoError(t, err)
	require.Equal(t, host, native)
	require.NoError(t, Runnable(native, host))
	v3, err := Arch("x86-64-v3", host)
	require.NoError(t, err)
	require.True(t, v3.HasFeature("sse4.1") && v3.HasFeature("fma") && !v3.HasFeature("avx512f"))
	require.ErrorContains(t, Runnable(v3, host), "lacks cx16, ")
	for name, want := range map[string]string{"aarch64": "64-bit Arm is not available", "sm_80": "--target=cuda", "x86-64": "the architectures are native, x86-64-v2"} {
		_, err := Arch(name, host)
		require.ErrorContains(t, err, want)
	}
}

// TestMerge: symbols of different kernels are apart, shared intrinsics are declared once.
func TestMerge(t *testing.T) {
	text := "define void @map(i64* %a) {\n  call void @llvm.x()\n  ret void\n}\ndeclare void @llvm.x()\n"
	require.Equal(t, `define void @map_0(i64* %a) {
  call void @llvm.x()
  ret void
}

define void @map_1(i64* %a) {
  call void @llvm.x()
  ret void
}

declare void @llvm.x()
`, Merge([]string{text, text}))
}
