package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func optCommand() *cobra.Command {
	var passes, output string
	c := &cobra.Command{
		Use:     "opt FILE.gtir",
		Short:   "Run named passes over IR text and print IR text",
		Example: "  gtc opt net.gtir --passes fold,cse,dce",
		Args:    oneModel,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := driver.Optimise(args[0], cmd.InOrStdin(), passes, output)
			if err != nil {
				return err
			}
			if output == "" {
				fmt.Fprint(cmd.OutOrStdout(), text)
			}
			return nil
		},
	}
	c.Flags().StringVar(&passes, "passes", "", "comma-separated names (default: all, in their order)")
	c.Flags().StringVarP(&output, "output", "o", "", "the file to write instead of standard output")
	return c
}
