// Package vet finds Go code on tensors that a trace cannot follow, or that does not do what it looks like. cmd/gtcvet runs it under go vet.
//
// In every function: results of operations that are not used (x.Add(y) does not change x; Add_ does), and tensors compared by ==. In functions that
// take tensors and give tensors, which may be traced: reading floats or data into Go, clocks, random numbers and environment variables of Go, ranging over a map around operations, and
// starting goroutines.
package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer is the check.
var Analyzer = &analysis.Analyzer{
	Name: "gtc",
	Doc:  "report code on tensors that a trace cannot follow, and results of operations that are not used",
	Run:  run,
}

const tensorPath = "github.com/gtc-project/gtc/tensor"

func run(pass *analysis.Pass) (any, error) {
	if strings.HasPrefix(pass.Pkg.Path(), tensorPath) {
		return nil, nil
	}
	for _, f := range pass.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ExprStmt:
				unused(pass, n)
			case *ast.BinaryExpr:
				comparison(pass, n)
			case *ast.FuncDecl:
				if obj, ok := pass.TypesInfo.Defs[n.Name].(*types.Func); ok && n.Body != nil && traceable(obj.Signature()) {
					traced(pass, n.Body)
				}
			case *ast.FuncLit:
				if sig, ok := pass.TypesInfo.TypeOf(n).(*types.Signature); ok && traceable(sig) {
					traced(pass, n.Body)
				}
			}
			return true
		})
	}
	return nil, nil
}

// unused reports operations whose result is thrown away.
func unused(pass *analysis.Pass, s *ast.ExprStmt) {
	call, ok := s.X.(*ast.CallExpr)
	if !ok || !isTensor(pass.TypesInfo.TypeOf(call)) {
		return
	}
	fn := callee(pass, call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != tensorPath || changes(fn.Name()) {
		return
	}
	pass.Reportf(call.Pos(), "the result of %s is not used: it changes no tensor%s", fn.Name(), remedy(fn))
}

// changes reports that a function of package tensor does something besides giving a result.
func changes(name string) bool {
	switch name {
	case "InPlace", "CopyFrom", "Fill", "RequiresGrad", "RetainGrad":
		return true
	}
	return strings.HasSuffix(name, "_")
}

func remedy(fn *types.Func) string {
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	if obj, _, _ := types.LookupFieldOrMethod(recv.Type(), true, fn.Pkg(), fn.Name()+"_"); obj != nil {
		return "; " + fn.Name() + "_ does"
	}
	return ""
}

// comparison reports == and != of two tensors.
func comparison(pass *analysis.Pass, e *ast.BinaryExpr) {
	if (e.Op == token.EQL || e.Op == token.NEQ) && isTensor(pass.TypesInfo.TypeOf(e.X)) && isTensor(pass.TypesInfo.TypeOf(e.Y)) {
		pass.Reportf(e.OpPos, "%s compares the handles of tensors, not their values: use Eq, or tensor.Call(\"equal\", …)", e.Op)
	}
}

// traceable reports that a function takes tensors and gives tensors.
func traceable(sig *types.Signature) bool {
	has := func(t *types.Tuple) bool {
		for v := range t.Variables() {
			if isTensor(v.Type()) || isTensorSlice(v.Type()) {
				return true
			}
		}
		return false
	}
	return has(sig.Params()) && has(sig.Results())
}

// traced reports what a trace of the function cannot follow.
func traced(pass *analysis.Pass, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if sig, ok := pass.TypesInfo.TypeOf(n).(*types.Signature); ok && traceable(sig) {
				return false // it is looked at on its own
			}
			return !peeked(pass, body, n)
		case *ast.GoStmt:
			pass.Reportf(n.Pos(), "a goroutine in a function that may be traced: its operations are recorded in no fixed order")
		case *ast.RangeStmt:
			if t := pass.TypesInfo.TypeOf(n.X); t != nil && isMap(t) && operates(pass, n.Body) {
				pass.Reportf(n.Pos(), "operations on tensors in the order of a map, which differs from run to run: sort the keys")
			}
		case *ast.CallExpr:
			if fn := callee(pass, n); fn != nil && fn.Pkg() != nil {
				host(pass, n, fn)
			}
		}
		return true
	})
}

func host(pass *analysis.Pass, call *ast.CallExpr, fn *types.Func) {
	name := fn.Pkg().Path() + "." + fn.Name()
	switch {
	case fn.Pkg().Path() == tensorPath && readsFloats(fn):
		pass.Reportf(call.Pos(), "%s reads values into Go, which a trace refuses: return the tensor, steer by trace.If, or look at it in trace.Peek", fn.Name())
	case name == "time.Now" || name == "time.Since":
		pass.Reportf(call.Pos(), "%s in a function that may be traced: a trace refuses a constant that differs from run to run; pass it as an input", name)
	case fn.Pkg().Path() == "math/rand" || fn.Pkg().Path() == "math/rand/v2":
		pass.Reportf(call.Pos(), "random numbers of Go in a function that may be traced: use tensor.Rand, which is drawn at each call")
	case name == "os.Getenv" || name == "os.LookupEnv":
		pass.Reportf(call.Pos(), "%s in a function that may be traced: its value becomes a constant; read it in the constructor", name)
	}
}

func readsFloats(fn *types.Func) bool {
	switch fn.Name() {
	case "Data":
		return fn.Signature().Recv() == nil
	case "Item", "Floats", "Ints":
		return fn.Signature().Recv() != nil && isTensor(fn.Signature().Recv().Type())
	}
	return false
}

// peeked reports that f is what trace.Peek calls.
func peeked(pass *analysis.Pass, body *ast.BlockStmt, f *ast.FuncLit) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 && call.Args[1] == f {
			fn := callee(pass, call)
			found = fn != nil && fn.Name() == "Peek"
		}
		return !found
	})
	return found
}

// operates reports that a block calls something that gives a tensor.
func operates(pass *analysis.Pass, body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isTensor(pass.TypesInfo.TypeOf(call)) {
			found = true
		}
		return !found
	})
	return found
}

func callee(pass *analysis.Pass, call *ast.CallExpr) *types.Func {
	e := ast.Unparen(call.Fun)
	if x, ok := e.(*ast.IndexExpr); ok { // a generic function
		e = x.X
	}
	switch e := e.(type) {
	case *ast.Ident:
		fn, _ := pass.TypesInfo.Uses[e].(*types.Func)
		return fn
	case *ast.SelectorExpr:
		fn, _ := pass.TypesInfo.Uses[e.Sel].(*types.Func)
		return fn
	}
	return nil
}

func isMap(t types.Type) bool {
	_, ok := t.Underlying().(*types.Map)
	return ok
}

func isTensorSlice(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	return ok && isTensor(s.Elem())
}

func isTensor(t types.Type) bool {
	p, ok := t.(*types.Pointer)
	if !ok {
		return false
	}
	n, ok := p.Elem().(*types.Named)
	return ok && n.Obj().Name() == "Tensor" && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == tensorPath
}
