package cpu

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var symbol = regexp.MustCompile(`@[\w.$]+`)

// Merge makes one module of the texts of several kernels. Symbols get the kernel's number, so that those of different kernels are apart; the
// intrinsics that they share are declared once.
func Merge(texts []string) string {
	var declared []string
	var body strings.Builder
	for i, text := range texts {
		text = symbol.ReplaceAllStringFunc(text, func(s string) string {
			if strings.HasPrefix(s, "@llvm.") {
				return s
			}
			return Symbol(s, i)
		})
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "declare ") {
				body.WriteString(line)
			} else if !slices.Contains(declared, line) {
				declared = append(declared, line)
			}
		}
		body.WriteByte('\n')
	}
	return body.String() + strings.Join(declared, "")
}

// Symbol is what Merge makes of a name in kernel number i.
func Symbol(name string, i int) string { return fmt.Sprintf("%s_%d", name, i) }
