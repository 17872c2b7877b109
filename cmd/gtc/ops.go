package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/aten"
	"github.com/gtc-project/gtc/ir"
)

func opsCommand() *cobra.Command {
	var asJSON, functions bool
	c := &cobra.Command{
		Use:   "ops [NAME]...",
		Short: "Print the op table",
		Long: `Print the IR's op table: name, operands, class, effect, whether there is a gradient, and what the op does.
With --functions, print PyTorch's functions that scripts may call instead, by schema.`,
		Example: "  gtc ops\n  gtc ops dot sum\n  gtc ops --functions --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if functions {
				return printFunctions(cmd, args, asJSON)
			}
			return printOps(cmd, args, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&functions, "functions", false, "print PyTorch's functions instead of the IR's ops")
	return c
}

// opRow is one op as --json prints it.
type opRow struct {
	Name   string   `json:"name"`
	Params []string `json:"params"`
	Class  string   `json:"class"`
	Effect string   `json:"effect"`
	Grad   bool     `json:"grad"`
	Doc    string   `json:"doc"`
}

func printOps(cmd *cobra.Command, names []string, asJSON bool) error {
	ops := ir.Ops()
	if len(names) > 0 {
		ops = nil
		for _, n := range names {
			op := ir.LookupOp(n)
			if op == nil {
				return fmt.Errorf("no op is named %q; `gtc ops` lists them, `gtc ops --functions` lists PyTorch's functions", n)
			}
			ops = append(ops, op)
		}
	}
	rows := make([]opRow, len(ops))
	for i, op := range ops {
		rows[i] = opRow{op.Name, op.Params, op.Class.String(), op.Effect.String(), op.Grad != nil, op.Doc}
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), rows)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OP\tCLASS\tEFFECT\tGRADIENT\tDOC")
	for _, r := range rows {
		grad := "no"
		if r.Grad {
			grad = "yes"
		}
		fmt.Fprintf(w, "%s(%s)\t%s\t%s\t%s\t%s\n", r.Name, strings.Join(r.Params, ", "), r.Class, r.Effect, grad, r.Doc)
	}
	return w.Flush()
}

func printFunctions(cmd *cobra.Command, names []string, asJSON bool) error {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	schemas := []string{}
	for _, f := range aten.All() {
		if f.Where == aten.Hidden {
			continue
		}
		if len(names) == 0 || wanted[f.Base] || wanted[f.Name] {
			schemas = append(schemas, f.Schema)
		}
	}
	if len(names) > 0 && len(schemas) == 0 {
		return fmt.Errorf("no function is named %s; `gtc ops --functions` lists them", strings.Join(names, " or "))
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), schemas)
	}
	for _, s := range schemas {
		fmt.Fprintln(cmd.OutOrStdout(), s)
	}
	return nil
}
