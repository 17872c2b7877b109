package main

import (
	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func compileCommand() *cobra.Command {
	var e driver.Emit
	c := &cobra.Command{
		Use:   "compile MODEL",
		Short: "Compile a model to a file",
		Long: `Compile a model. --emit says to what: a package (.gtc) or IR text (.gtir), which need no signature; machine code forms
(so, obj, llvm, asm, ptx) and Go source (go) are not available yet in this version.
Without -o, text goes to standard output.`,
		Example: `  gtc compile net.py --entry Net --weights w.npz -o net.gtc
  gtc compile net.py --emit=ir --input 'x=f32[8,16]' --grad`,
		Args: oneModel,
	}
	o := modelFlags(c)
	f := c.Flags()
	f.StringVar(&e.Form, "emit", "", "package, ir, so, obj, llvm, asm, ptx or go (default: by -o's name, else package)")
	f.StringVarP(&e.Output, "output", "o", "", "the file to write")
	f.BoolVar(&o.Grad, "grad", false, "compile the gradient: the function also takes cotangents and returns gradients")
	f.StringVar(&e.Passes, "passes", "", "the passes to run, comma-separated (default: all that are needed)")
	f.StringVar(&e.PrintAfter, "print-after", "", "print the IR after this pass, or after 'all', to standard error")
	f.BoolVar(&e.TimePasses, "time-passes", false, "print how long each pass took, to standard error")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		e.Stdout, e.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if err := e.Check(); err != nil {
			return usageError{err}
		}
		return driver.Compile(cmd.Context(), args[0], o, &e)
	}
	return c
}
