package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func benchCommand() *cobra.Command {
	var asJSON bool
	var minTime time.Duration
	c := &cobra.Command{
		Use:   "bench MODEL",
		Short: "Time a model",
		Long: `Time what 'gtc run' with the same arguments computes; with --grad, forward and backward together.
Times are in milliseconds. compile_ms is loading, expanding and compiling; first_ms is the first call; the rest are over later calls.
bench never falls back to the reference evaluator: without LLVM it fails, unless --target=interp asks for it.`,
		Example: "  gtc bench net.py --entry Net --weights w.npz --inputs in.npz --threads 1 --min-time 2s --json",
		Args:    oneModel,
	}
	o := modelFlags(c)
	c.Flags().BoolVar(&o.Grad, "grad", false, "time forward and backward together")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&minTime, "min-time", time.Second, "how long to measure")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		b, err := driver.Bench(cmd.Context(), args[0], o, minTime)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), b)
		}
		w := cmd.OutOrStdout()
		fmt.Fprintf(w, "compile %10.3f ms\nfirst   %10.3f ms\nmedian  %10.3f ms\nmin     %10.3f ms\np99     %10.3f ms\nruns    %10d\n", b.CompileMS, b.FirstMS, b.MedianMS, b.MinMS, b.P99MS, b.Runs)
		fmt.Fprintf(w, "planned %10.1f MB\npeak    %10.1f MB\nresident%10.1f MB\n", float64(b.PlannedBytes)/1e6, float64(b.PeakBytes)/1e6, float64(b.RSSBytes)/1e6)
		return nil
	}
	return c
}
