package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

// modelFlags adds the options that every command with a MODEL takes, and gives where they are kept.
func modelFlags(c *cobra.Command) *driver.Options {
	o := &driver.Options{}
	f := c.Flags()
	f.StringVar(&o.Entry, "entry", "", "the function or class to use, or a class with arguments: 'Net(width=8)' (default: forward)")
	f.StringVar(&o.Weights, "weights", "", "a module's weights: FILE (.safetensors, .pth or .npz) or random:SEED")
	f.StringVar(&o.Inputs, "inputs", "", "a .npz file with one array per parameter")
	f.StringArrayVar(&o.Input, "input", nil, "one argument: name=FILE.npy, name=FILE.npz:KEY, name=0.5, or name=f32[1,28,28] for a signature; repeatable")
	f.StringArrayVar(&o.Dynamic, "dynamic", nil, "make a size symbolic: name:0; repeatable")
	f.StringVar(&o.Target, "target", "", "cpu, interp (the reference evaluator) or cuda (default: cpu where LLVM is found)")
	f.BoolVar(&o.Emulate, "emulate", false, "with --target=cuda: run on the emulator instead of a GPU")
	f.StringVar(&o.Arch, "arch", "native", "what machine code is made for: native, x86-64-v2, -v3 or -v4; for PTX sm_80, sm_90a, …")
	f.IntVar(&o.Threads, "threads", 0, "number of threads (default: one per processor)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the random stream")
	f.Var((*sizeFlag)(&o.MemoryBudget), "memory-budget", "fail where the planned memory of a run is larger, for example 512MiB")
	f.BoolVar(&o.Train, "train", false, "run module classes in training mode")
	o.Warn = func(line string) { fmt.Fprintln(c.ErrOrStderr(), "gtc: "+line) }
	c.PreRunE = func(*cobra.Command, []string) error {
		if err := o.Check(); err != nil {
			return usageError{err}
		}
		return nil
	}
	return o
}

// refuse makes options of a command that would have no effect an error.
func refuse(c *cobra.Command, why string, names ...string) error {
	for _, n := range names {
		if c.Flags().Changed(n) {
			return usagef("--%s: %s", n, why)
		}
	}
	return nil
}

// sizeFlag is a flag that holds a number of bytes.
type sizeFlag int64

func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return fmt.Sprint(int64(*s))
}

func (s *sizeFlag) Set(text string) error {
	n, err := driver.ParseSize(text)
	*s = sizeFlag(n)
	return err
}

func (s *sizeFlag) Type() string { return "SIZE" }
