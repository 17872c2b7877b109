package main

import "github.com/spf13/cobra"

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "serve MODEL",
		Short:              "Answer inference requests over HTTP (Open Inference Protocol v2) (not available yet)",
		Example:            "  gtc serve net.gtc --listen :8080",
		Args:               oneModel,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               notAvailable("gtc serve"),
	}
}
