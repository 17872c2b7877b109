// Package jit places object code in memory and calls it.
//
// Load reads an x86-64 ELF relocatable object as LLVM writes it, lays its sections out in fresh pages, applies the relocations and
// makes the pages executable; no linker takes part. Call jumps into the code through a few instructions of assembly, on a stack of
// its own with a guard page, at the price of some nanoseconds. While machine code runs the garbage collector cannot stop that
// thread, so one call should stay below about a millisecond.
//
// Damaged object code is an error from Load, as far as the ELF structure shows it; damaged instructions cannot be seen here, which
// is why the kernel cache keeps a checksum.
package jit
