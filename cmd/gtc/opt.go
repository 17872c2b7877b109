package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/passes"
)

func optCommand() *cobra.Command {
	var names, output string
	c := &cobra.Command{
		Use:     "opt FILE.gtir",
		Short:   "Run named passes over IR text and print IR text",
		Long:    "Run named passes over IR text and print IR text. '-' is standard input. The passes, in the order in which they run:\n\n" + passList(),
		Example: "  gtc opt net.gtir --passes fold,cse,dce",
		Args:    oneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := driver.Optimise(args[0], cmd.InOrStdin(), &driver.Observe{Passes: names}, output)
			if err != nil {
				return err
			}
			if output == "" {
				fmt.Fprint(cmd.OutOrStdout(), text)
			}
			return nil
		},
	}
	c.Flags().StringVar(&names, "passes", "", "comma-separated names (default: those with *)")
	c.Flags().StringVarP(&output, "output", "o", "", "the file to write instead of standard output")
	return c
}

// passList describes the passes.
func passList() string {
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	for _, p := range passes.Table {
		name := p.Name
		if p.Default {
			name += " *"
		}
		fmt.Fprintf(w, "  %s\t%s\n", name, p.Doc)
	}
	_ = w.Flush() // into memory
	return sb.String() + "\nThose with * run where none is named; specialise does the work of the others in one walk."
}
