package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/npz"
)

func runCommand() *cobra.Command {
	var outputs string
	var asJSON bool
	c := &cobra.Command{
		Use:   "run MODEL",
		Short: "Run a model on arrays",
		Long: `Run a model on the arrays of a .npz file, one per parameter, and write the results out.0, out.1, … to another.

With --grad, also write grad.NAME for every floating-point tensor parameter: the gradient of sum over N of sum(out.N * cotangent.N),
where cotangent.N comes from the input file. With v.NAME there too, write grad2.NAME, the gradient of sum(grad.NAME * v.NAME).
Without --outputs, the results are printed.`,
		Example: `  gtc run net.py --inputs in.npz --outputs out.npz --grad
  gtc run net.py --entry 'Net(width=8)' --weights random:1 --input 'x=f32[1,8]'`,
		Args: oneModel,
	}
	o := modelFlags(c)
	c.Flags().StringVar(&outputs, "outputs", "", "the .npz file to write; without it the results are printed")
	c.Flags().BoolVar(&o.Grad, "grad", false, "also compute gradients")
	c.Flags().BoolVar(&o.Eager, "eager", false, "run a script op by op through the eager API")
	c.Flags().BoolVar(&asJSON, "json", false, "print the results' names, dtypes and shapes as JSON")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		results, err := driver.Run(cmd.Context(), args[0], o)
		if err != nil {
			return err
		}
		if outputs != "" {
			if err := npz.Write(outputs, results); err != nil {
				return err
			}
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), describe(results))
		}
		if outputs == "" {
			for _, r := range results {
				fmt.Fprintf(cmd.OutOrStdout(), "%s = %s\n", r.Name, abbreviate(r.String()))
			}
		}
		return nil
	}
	return c
}

// arrayInfo describes an array in JSON output.
type arrayInfo struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func describe(arrays []npz.Named) []arrayInfo {
	out := make([]arrayInfo, len(arrays))
	for i, a := range arrays {
		out[i] = arrayInfo{a.Name, a.DType.String(), a.Shape}
	}
	return out
}

// abbreviate shortens an array's text in the middle.
func abbreviate(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	head, tail := s[:most/2], s[len(s)-most/4:]
	if i := strings.LastIndexByte(head, ','); i > 0 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, ','); i >= 0 {
		tail = tail[i+1:]
	}
	return head + ", …, " + tail
}
