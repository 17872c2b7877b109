package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func dotCommand() *cobra.Command {
	var d driver.Drawing
	c := &cobra.Command{
		Use:   "dot MODEL",
		Short: "Draw a model's graph",
		Long: `Draw a model's graph: nested blocks are clusters, edges carry type and shape. The formats svg and png need Graphviz's dot.
Without -o, the drawing goes to standard output.`,
		Example: "  gtc dot net.py -o net.svg\n  gtc dot net.py --format dot --input 'x=f32[1,8]' --after dce",
		Args:    oneModel,
	}
	o := modelFlags(c)
	c.Flags().StringVar(&d.After, "after", "", "draw the graph as it is after this pass")
	c.Flags().StringVar(&d.Format, "format", "", "dot, svg or png (default: by -o's name, else dot)")
	c.Flags().StringVarP(&d.Output, "output", "o", "", "the file to write")
	c.Flags().BoolVar(&o.Grad, "grad", false, "draw the gradient")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := refuse(cmd, "gtc dot only draws", "memory-budget", "arch"); err != nil {
			return err
		}
		if err := d.Check(); err != nil {
			return usageError{err}
		}
		data, err := driver.Draw(cmd.Context(), args[0], o, &d)
		if err == nil && d.Output == "" {
			_, err = fmt.Fprint(cmd.OutOrStdout(), string(data))
		}
		return err
	}
	return c
}
