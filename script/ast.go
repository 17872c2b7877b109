package script

// File is a parsed source file.
type File struct {
	src     *source
	imports []*importStmt
	funcs   map[string]*funcDef
	classes map[string]*classDef
	consts  map[string]expr // module-level NAME = expression
	order   []string        // names of functions and classes in source order
}

// expr is an expression. Nodes are immutable once parsed.
type expr interface{ at() Pos }

// node gives every syntax node its position.
type node struct{ pos Pos }

func (n node) at() Pos { return n.pos }

type (
	nameExpr struct {
		node
		name string
	}
	intExpr struct {
		node
		v   int64
		big bool // 2**63, valid only after a minus
	}
	floatExpr struct {
		node
		v float64
	}
	strExpr struct {
		node
		v string
	}
	// fstrExpr is an f-string: parts alternate freely between strExpr and the expressions in braces.
	fstrExpr struct {
		node
		parts []expr
		specs []string // parallel to parts: the format after the colon, "" for none
	}
	// constExpr is True, False, None or Ellipsis.
	constExpr struct {
		node
		name string
	}
	attrExpr struct {
		node
		x    expr
		name string
	}
	callExpr struct {
		node
		fn   expr
		args []expr // starExpr for *list
		kws  []keyword
	}
	keyword struct {
		name string
		pos  Pos
		x    expr
	}
	indexExpr struct {
		node
		x    expr
		subs []expr // sliceExpr for a:b:c
		tup  bool   // written with a comma
	}
	sliceExpr struct {
		node
		lo, hi, step expr // nil where absent
	}
	unaryExpr struct {
		node
		op string // "-", "+", "~", "not"
		x  expr
	}
	binaryExpr struct {
		node
		op   string
		x, y expr
	}
	boolExpr struct {
		node
		op    string // "and", "or"
		terms []expr
	}
	compareExpr struct {
		node
		first expr
		ops   []string // "<", "==", "is", "is not", "in", "not in", …
		rest  []expr
	}
	ifExpr struct {
		node
		cond, then, els expr
	}
	listExpr struct {
		node
		elems []expr
	}
	tupleExpr struct {
		node
		elems []expr
	}
	dictExpr struct {
		node
		keys, values []expr
	}
	compExpr struct {
		node
		elem, value expr // value: of a dict comprehension
		target      expr
		iter        expr
		conds       []expr
	}
	starExpr struct {
		node
		x expr
	}
)

// stmt is a statement.
type stmt interface{ at() Pos }

type (
	importStmt struct {
		node
		module string
		names  map[string]string // local name -> imported name; "" for the module itself
	}
	exprStmt struct {
		node
		x expr
	}
	assignStmt struct {
		node
		targets []expr // a = b = value has two
		typ     expr   // annotation, nil for none
		value   expr   // nil for a bare annotation
	}
	augStmt struct {
		node
		op     string
		target expr
		value  expr
	}
	ifStmt struct {
		node
		cond      expr
		then, els []stmt
	}
	whileStmt struct {
		node
		cond expr
		body []stmt
	}
	forStmt struct {
		node
		target expr
		iter   expr
		body   []stmt
	}
	breakStmt    struct{ node }
	continueStmt struct{ node }
	passStmt     struct{ node }
	returnStmt   struct {
		node
		x expr // nil for a bare return
	}
	assertStmt struct {
		node
		cond, msg expr
	}
	raiseStmt struct {
		node
		x expr
	}
	delStmt struct {
		node
		targets []expr
	}
	withStmt struct {
		node
		items []expr
		body  []stmt
	}
	funcDef struct {
		node
		name       string
		params     []param
		ret        expr
		body       []stmt
		decorators []expr
		file       *File
		owner      *classDef // of a method
	}
	classDef struct {
		node
		file       *File
		name       string
		bases      []expr
		fields     []*assignStmt
		methods    map[string]*funcDef
		order      []string
		decorators []expr
	}
)

func (d *funcDef) hasParam(name string) bool {
	for _, p := range d.params {
		if p.name == name {
			return true
		}
	}
	return false
}

// param is a parameter of a function.
type param struct {
	name   string
	pos    Pos
	typ    expr
	deflt  expr
	kwOnly bool
	star   string // "*" or "**" before the name: it takes all further arguments
}
