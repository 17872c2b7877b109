package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func bisectCommand() *cobra.Command {
	var names driver.Observe
	var asJSON bool
	var tol driver.Tolerance
	c := &cobra.Command{
		Use:   "bisect MODEL",
		Short: "Find the first rewrite that changes a result",
		Long: `Find the first rewrite that changes a result, by halving: the passes make their rewrites in the same order every time and can be stopped after any
number of them. Results are compared with those of the reference evaluator on the model as it was read. The exit status is 1 where a rewrite is found.

The tolerances allow for what matrix products and convolutions may differ between targets; with --target=interp, --rtol 0 --atol 0 asks for equal bits.`,
		Example: "  gtc bisect net.py --inputs in.npz\n  gtc bisect net.py --inputs in.npz --grad --target=interp --rtol 0 --atol 0",
		Args:    oneModel,
	}
	o := modelFlags(c)
	c.Flags().BoolVar(&o.Grad, "grad", false, "compare gradients too")
	c.Flags().StringVar(&names.Passes, "passes", "", "the passes to run after specialise, comma-separated (default: fuse)")
	c.Flags().Float64Var(&tol.Rel, "rtol", 1e-4, "relative difference that is allowed")
	c.Flags().Float64Var(&tol.Abs, "atol", 1e-5, "absolute difference that is allowed")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := refuse(cmd, "it compares results, whatever memory they take", "memory-budget"); err != nil {
			return err
		}
		list, err := names.Names()
		if err != nil {
			return usageError{err}
		}
		found, err := driver.Bisect(cmd.Context(), args[0], o, list, tol)
		if err != nil {
			return err
		}
		if asJSON {
			err = printJSON(cmd.OutOrStdout(), found)
		} else {
			_, err = fmt.Fprint(cmd.OutOrStdout(), found)
		}
		if err == nil && found.Change != "" {
			err = errors.New("a result changes")
		}
		return err
	}
	return c
}
