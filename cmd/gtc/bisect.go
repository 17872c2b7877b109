package main

import "github.com/spf13/cobra"

func bisectCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "bisect MODEL",
		Short:              "Find the first rewrite that changes a result (not available yet)",
		Example:            "  gtc bisect net.py --inputs in.npz",
		Args:               oneModel,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               notAvailable("gtc bisect"),
	}
}
