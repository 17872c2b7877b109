// Command gtcvet checks Go code on tensors under go vet; see package vet for what it finds.
//
//	go vet -vettool=$(which gtcvet) ./...
package main

import (
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/singlechecker"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/gtc-project/gtc/trace/vet"
)

func main() {
	// go vet passes flags and .cfg files; else the arguments are packages
	for _, a := range os.Args[1:] {
		if strings.HasSuffix(a, ".cfg") || strings.HasPrefix(a, "-V") || a == "-flags" {
			unitchecker.Main(vet.Analyzer)
		}
	}
	singlechecker.Main(vet.Analyzer)
}
