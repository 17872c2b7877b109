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
		Long: `Compile a model. --emit says to what:

  package  a model package (.gtc): IR text and weights; it runs wherever gtc runs        .gtc
  ir       IR text, with a signature as it is after the passes                           .gtir
  llvm     the kernels of the cpu target as LLVM text                                    .ll
  asm      the same as assembly text                                                     .s
  obj      the same as an object file                                                    .o
  ptx      the kernels of the cuda target as PTX text                                    .ptx
  go       a Go file that embeds the model, with a typed function named after the
           entry, or after the file where the entry is forward                          .go

llvm, asm, obj, ptx and go need a signature: --input NAME=f32[8,16] for every tensor, or --inputs FILE.npz. In text, comments say which node runs
which kernel. Without -o, text goes to standard output.

The order of the passes is fixed ('gtc opt -h' lists them); --passes says which run. --html writes a page with the function after every pass side
by side.`,
		Example: `  gtc compile net.py --entry Net --weights w.npz -o net.gtc
  gtc compile net.py --input 'x=f32[8,16]' --emit=asm --arch x86-64-v3 -o net.s
  gtc compile net.py --input 'x=f32[8,16]' --grad --emit=ptx --arch sm_90a
  gtc compile net.py --input 'x=f32[8,16]' --emit=ir --time-passes --html passes.html`,
		Args: oneModel,
	}
	o := modelFlags(c)
	f := c.Flags()
	f.StringVar(&e.Form, "emit", "", "package, ir, obj, llvm, asm, ptx or go (default: by -o's name, else package)")
	f.StringVarP(&e.Output, "output", "o", "", "the file to write")
	f.BoolVar(&o.Grad, "grad", false, "compile the gradient: the function also takes cotangents and returns gradients")
	f.StringVar(&e.Passes, "passes", "", "the passes to run, comma-separated (default: all that are needed)")
	f.StringVar(&e.PrintAfter, "print-after", "", "print the IR after this pass, or after 'all', to standard error")
	f.StringVar(&e.HTML, "html", "", "write a page that shows the IR after every pass to this file")
	f.StringVar(&e.DotDir, "dot", "", "write a drawing of the graph after every pass (Graphviz) into this folder")
	f.BoolVar(&e.TimePasses, "time-passes", false, "print how long each pass took, to standard error")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		e.Stdout, e.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
		if err := e.Check(o); err != nil {
			return usageError{err}
		}
		return driver.Compile(cmd.Context(), args[0], o, &e)
	}
	return c
}
