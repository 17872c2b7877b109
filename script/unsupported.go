package script

import (
	"slices"
	"strings"
)

// Unsupported lists the functions and layers that the file calls by a name under torch which is not available, in order of place. It needs no types,
// so that it finds them all at once, in code that no entry reaches too.
func (f *File) Unsupported() []*Error {
	var out []*Error
	check := func(e expr) {
		call, ok := e.(*callExpr)
		if !ok {
			return
		}
		path, ok := f.dotted(call.fn)
		if ok && strings.HasPrefix(path, "torch.") && !available(path) {
			out = append(out, f.src.errorf(call.fn.at(), "'%s' is unknown or not supported", short(path)))
		}
	}
	for _, fn := range f.funcs {
		walkStmts(fn.body, check)
	}
	for _, c := range f.classes {
		for _, m := range c.methods {
			walkStmts(m.body, check)
		}
	}
	slices.SortFunc(out, func(a, b *Error) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Col - b.Pos.Col
	})
	return out
}

// available reports whether a dotted name under torch may be called.
func available(path string) bool {
	i := strings.LastIndexByte(path, '.')
	base, name := path[:i], path[i+1:]
	_, special := specialFunctions[path]
	return special || len(functionOverloads(path)) > 0 || base == "torch.nn" && knownLayer(name) || strings.HasPrefix(base, "torch.nn.modules") ||
		!slices.Contains([]string{"torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"}, base)
}

// walkStmts calls f for every expression in statements.
func walkStmts(ss []stmt, f func(expr)) {
	for _, s := range ss {
		switch s := s.(type) {
		case *exprStmt:
			walkExpr(s.x, f)
		case *assignStmt:
			walkExpr(s.value, f)
		case *augStmt:
			walkExpr(s.target, f)
			walkExpr(s.value, f)
		case *ifStmt:
			walkExpr(s.cond, f)
			walkStmts(s.then, f)
			walkStmts(s.els, f)
		case *whileStmt:
			walkExpr(s.cond, f)
			walkStmts(s.body, f)
		case *forStmt:
			walkExpr(s.iter, f)
			walkStmts(s.body, f)
		case *returnStmt:
			walkExpr(s.x, f)
		case *assertStmt:
			walkExpr(s.cond, f)
			walkExpr(s.msg, f)
		case *raiseStmt:
			walkExpr(s.x, f)
		case *withStmt:
			walkStmts(s.body, f)
		}
	}
}
