package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "info MODEL",
		Short:   "Print a model's signature, ops, parameters, sizes, and what in it is not supported",
		Example: "  gtc info net.py\n  gtc info net.py --entry Net --json",
		Args:    oneModel,
	}
	o := modelFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := refuse(cmd, "gtc info only looks", "memory-budget", "arch"); err != nil {
			return err
		}
		info, err := driver.Describe(args[0], o)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), info)
		}
		printInfo(cmd, info)
		return nil
	}
	return c
}

func printInfo(cmd *cobra.Command, info *driver.Info) {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "file\t%s (%s)\n", info.Path, info.Kind)
	fmt.Fprintf(w, "entry\t%s\n", info.Entry)
	for _, p := range info.Params {
		fmt.Fprintf(w, "parameter\t%s\n", p)
	}
	for _, r := range info.Results {
		fmt.Fprintf(w, "result\t%s\n", r)
	}
	for _, p := range info.Weights {
		fmt.Fprintf(w, "weight\t%s: %s\n", p.Name, p.Type)
	}
	if len(info.Weights) > 0 {
		fmt.Fprintf(w, "weights in all\t%d elements, %d bytes\n", info.WeightElems, info.WeightBytes)
	}
	fmt.Fprintf(w, "nodes\t%d\n", info.Nodes)
	for _, op := range info.Ops {
		fmt.Fprintf(w, "op\t%s\t%d\n", op.Name, op.Count)
	}
	for _, u := range info.Unsupported {
		fmt.Fprintf(w, "not supported\t%s\n", u)
	}
}
