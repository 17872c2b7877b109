// Package debug reads GTC_DEBUG, the one environment variable that shows or checks what gtc does inside: names separated by commas.
package debug

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// names are the things that GTC_DEBUG may switch on.
var names = map[string]string{
	"help":   "list these names",
	"stack":  "print where an internal error happened",
	"verify": "check functions after every pass",
}

var on = parse(os.Getenv("GTC_DEBUG"))

func parse(s string) map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Split(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out[name] = true
		}
	}
	return out
}

// On reports whether a name is switched on.
func On(name string) bool {
	if names[name] == "" {
		panic("BUG: GTC_DEBUG has no name " + name)
	}
	return on[name]
}

// Notice is what a command should say on standard error at its start: the list for help, and a complaint about names that do not
// exist. It is empty mostly.
func Notice() string { return notice(on) }

func notice(on map[string]bool) string {
	var sb strings.Builder
	var known, unknown []string
	for name := range on {
		if names[name] == "" {
			unknown = append(unknown, name)
		}
	}
	for name := range names {
		known = append(known, name)
	}
	slices.Sort(known)
	slices.Sort(unknown)
	if len(unknown) > 0 {
		fmt.Fprintf(&sb, "GTC_DEBUG: unknown: %s\n", strings.Join(unknown, ", "))
	}
	if on["help"] || len(unknown) > 0 {
		sb.WriteString("GTC_DEBUG takes names separated by commas:\n")
		for _, name := range known {
			fmt.Fprintf(&sb, "  %-8s %s\n", name, names[name])
		}
	}
	return sb.String()
}
