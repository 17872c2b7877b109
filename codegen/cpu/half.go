package cpu

import (
	"math"

	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/gtc-project/gtc/ir/dtype"
)

// Halves are converted by integer arithmetic, as package dtype does: conversion instructions differ between CPUs in what they make
// of NaN, and without them LLVM calls library functions that are not there.

func floatBits(t types.Type, v float64) uint64 {
	if t == f32 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// widen turns half bits (i16) into f32.
func (l *lanes) widen(d dtype.DType, h value.Value) value.Value {
	b := l.b
	i, f := wide(i32, l.w), wide(f32, l.w)
	x := b.NewZExt(h, i)
	k := func(v uint64) value.Value { return splat(i32, l.w, v) }
	if d == dtype.BF16 {
		return b.NewBitCast(b.NewShl(x, k(16)), f)
	}
	sign := b.NewShl(b.NewAnd(x, k(0x8000)), k(16))
	em := b.NewAnd(x, k(0x7fff))
	shifted := b.NewShl(em, k(13))
	normal := b.NewAdd(shifted, k(112<<23))
	special := b.NewAdd(shifted, k(224<<23))
	unit := splat(f32, l.w, floatBits(f32, 0x1p-24))
	tiny := b.NewBitCast(b.NewFMul(b.NewSIToFP(em, f), unit), i)
	abs := b.NewSelect(b.NewICmp(enum.IPredULT, em, k(0x400)), tiny, normal)
	abs = b.NewSelect(b.NewICmp(enum.IPredUGE, em, k(0x7c00)), special, abs)
	return b.NewBitCast(b.NewOr(sign, abs), f)
}

// narrow rounds f32 to half bits (i16), ties to even.
func (l *lanes) narrow(d dtype.DType, x value.Value) value.Value {
	b := l.b
	i, f := wide(i32, l.w), wide(f32, l.w)
	k := func(v uint64) value.Value { return splat(i32, l.w, v) }
	bits := b.NewBitCast(x, i)
	abs := b.NewAnd(bits, k(0x7fffffff))
	sign := b.NewAnd(b.NewLShr(bits, k(16)), k(0x8000))
	isNaN := b.NewICmp(enum.IPredUGT, abs, k(0x7f800000))
	var h value.Value
	if d == dtype.BF16 {
		odd := b.NewAnd(b.NewLShr(bits, k(16)), k(1))
		h = b.NewLShr(b.NewAdd(bits, b.NewAdd(odd, k(0x7fff))), k(16))
		h = b.NewSelect(isNaN, b.NewOr(sign, k(0x7fc0)), h)
		return b.NewTrunc(h, wide(i16, l.w))
	}
	half := splat(f32, l.w, floatBits(f32, 0.5))
	tiny := b.NewSub(b.NewBitCast(b.NewFAdd(b.NewBitCast(abs, f), half), i), k(0x3f000000))
	odd := b.NewAnd(b.NewLShr(abs, k(13)), k(1))
	normal := b.NewLShr(b.NewSub(b.NewAdd(abs, b.NewAdd(odd, k(0xfff))), k(0x38000000)), k(13))
	h = b.NewSelect(b.NewICmp(enum.IPredULT, abs, k(0x38800000)), tiny, normal)
	h = b.NewSelect(b.NewICmp(enum.IPredUGE, abs, k(0x477ff000)), k(0x7c00), h)
	h = b.NewSelect(isNaN, k(0x7e00), h)
	return b.NewTrunc(b.NewOr(sign, h), wide(i16, l.w))
}
