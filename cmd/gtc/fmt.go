package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gtc-project/gtc/internal/driver"
)

func fmtCommand() *cobra.Command {
	var write bool
	c := &cobra.Command{
		Use:     "fmt FILE.gtir...",
		Short:   "Format IR text",
		Long:    "Format IR text: print it in its one standard form, or with -w put that form into the file. '-' is standard input.",
		Example: "  gtc fmt net.gtir\n  gtc fmt -w net.gtir",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("a .gtir file is needed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				text, err := driver.Format(path, cmd.InOrStdin(), write)
				if err != nil {
					return err
				}
				if !write {
					fmt.Fprint(cmd.OutOrStdout(), text)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&write, "write", "w", false, "write the result to the file instead of standard output")
	return c
}
