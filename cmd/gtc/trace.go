package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func traceCommand() *cobra.Command {
	var output string
	var noCheck bool
	c := &cobra.Command{
		Use:   "trace MODEL",
		Short: "Record a Go function or module and write a package",
		Long: `Record a Go function or module and write a package.

MODEL is a Go package path, a dot, and an exported name: a function of *tensor.Tensor parameters, or a constructor of a type with a Forward method. The function runs
once on the given inputs, in a small program that is built with your own go command and writes nothing into your module. It then runs again on the same and
on other inputs, and the traced function must agree. Every input needs --input or an array in --inputs.`,
		Example: "  gtc trace ./models/lenet.New --input x=sample.npy -o lenet.gtc\n  gtc trace ./examples/lenet.New --input 'x=f32[1,1,28,28]' --weights lenet.safetensors -o lenet.gtc",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("one MODEL is needed: a Go package path, a dot and a name, such as ./models/lenet.New")
			}
			return nil
		},
	}
	o := modelFlags(c)
	c.Flags().StringVarP(&output, "output", "o", "", "the package to write (default: the function's package name with .gtc)")
	c.Flags().BoolVar(&noCheck, "no-check", false, "do not run the function again to compare")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := refuse(cmd, "a Go function is named by MODEL itself", "entry"); err != nil {
			return err
		}
		if err := refuse(cmd, "gtc trace runs the function in its own program, on the default target", "target", "emulate", "arch", "threads", "memory-budget"); err != nil {
			return err
		}
		if output == "" {
			output = defaultPackage(args[0])
		}
		if err := driver.TraceGo(cmd.Context(), args[0], o, output, !noCheck); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "gtc: wrote %s\n", output)
		return nil
	}
	return c
}

// defaultPackage is lenet.gtc for ./models/lenet.New.
func defaultPackage(ref string) string {
	name := filepath.Base(ref[:max(0, strings.LastIndexByte(ref, '.'))])
	return name + ".gtc"
}
