#include "textflag.h"

// func call(fn uintptr, args unsafe.Pointer, stack uintptr)
//
// The System V convention keeps BX, BP and R12 to R15 across the call, so BX can hold Go's stack pointer. Go's ABI0 asks for
// nothing but SP and BP; the assembler saves BP because the frame is not empty.
TEXT ·call(SB), NOSPLIT, $16-24
	MOVQ fn+0(FP), AX
	MOVQ args+8(FP), DI
	MOVQ stack+16(FP), CX
	MOVQ SP, BX
	MOVQ CX, SP
	CALL AX
	MOVQ BX, SP
	RET
