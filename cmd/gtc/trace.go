package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/gotrace"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/trace"
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
		Args:    oneModel,
	}
	o := modelFlags(c)
	c.Flags().StringVarP(&output, "output", "o", "", "the package to write (default: the function's package name with .gtc)")
	c.Flags().BoolVar(&noCheck, "no-check", false, "do not run the function again to compare")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(o.Dynamic) > 0 {
			return errors.New("--dynamic: traces with symbolic sizes are not available yet; trace with the size that will be used")
		}
		t, err := gotrace.Find(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		arrays, err := driver.InputArrays(t.Params, o)
		if err != nil {
			return err
		}
		tmp, err := os.CreateTemp("", "gtc-inputs-*.npz")
		if err != nil {
			return err
		}
		tmp.Close()
		defer os.Remove(tmp.Name())
		if err := npz.Write(tmp.Name(), arrays); err != nil {
			return err
		}
		if output == "" {
			output = defaultPackage(args[0])
		}
		cfg := trace.ToolConfig{Source: args[0], Inputs: tmp.Name(), Train: o.Train, NoCheck: noCheck}
		if cfg.Output, err = filepath.Abs(output); err != nil {
			return err
		}
		if o.Weights != "" {
			if cfg.Weights, err = filepath.Abs(o.Weights); err != nil {
				return err
			}
		}
		if err := t.Run(cmd.Context(), cfg); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "gtc: wrote %s\n", output)
		return nil
	}
	return c
}

// defaultPackage is lenet.gtc for ./models/lenet.New.
func defaultPackage(ref string) string {
	name := filepath.Base(ref[:strings.LastIndexByte(ref, '.')])
	return name + ".gtc"
}
