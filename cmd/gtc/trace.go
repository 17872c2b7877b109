package main

import "github.com/spf13/cobra"

func traceCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "trace MODEL",
		Short:              "Record a Go function or module and write a package (not available yet)",
		Example:            "  gtc trace ./models/lenet.New --input x=sample.npy -o lenet.gtc",
		Args:               oneModel,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               notAvailable("gtc trace"),
	}
}
