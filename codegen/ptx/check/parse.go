package check

import (
	"fmt"
	"strconv"
	"strings"
)

// Module is a parsed PTX module.
type Module struct {
	Version     string // "7.0"; "" where missing
	Target      string // "sm_80"
	AddressSize int
	Vars        []*Var
	Entries     []*Entry
	externs     []token
}

// Var is a variable in global, constant or shared memory.
type Var struct {
	Line  int
	Name  string
	Space string // global, const, shared
	Align int
	Type  string // of an element: b8, u64, f32, …
	Count int    // elements
	// Init are the initial elements as they are written; nil where there are none.
	Init []string
}

// Size is the variable's size in bytes.
func (v *Var) Size() int { return v.Count * sizeOf(v.Type) }

// Entry is a kernel.
type Entry struct {
	Line   int
	Name   string
	Params []Param
	MaxTID []int
	Regs   map[string]string // register -> type: pred, b16, b32, b64, f32, f64
	Vars   []*Var            // shared memory of the kernel's own
	Code   []Instr
	Labels map[string]int // -> index into Code
}

// Param is a kernel's parameter.
type Param struct {
	Name, Type string
}

// Instr is an instruction.
type Instr struct {
	Line  int
	Guard string // the predicate register of @%p or @!%p; "" where there is none
	Not   bool
	Op    string // with all modifiers
	Args  []Operand
}

// OperandKind tells operands apart.
type OperandKind uint8

// The kinds of operand.
const (
	Register OperandKind = iota // Name
	Special                     // a special register: Name
	Number                      // Int, for floats the bits
	Float32                     // Int: the bits
	Float64                     // Int: the bits
	Memory                      // [Name+Int], Name a register or a symbol, or [Int]
	Symbol                      // a label or a variable: Name
	Vector                      // {Elems}
)

// Operand is an operand of an instruction.
type Operand struct {
	Kind  OperandKind
	Name  string
	Int   int64
	Elems []string
}

// parser walks the tokens.
type parser struct {
	toks []token
	at   int
	m    *Module

	// Within { } in an entry, registers may be declared whose names start with any letter. They are renamed to names of their own.
	local  map[string]string
	scopes int
}

// Parse reads a module. It fails at the first construct that it does not know.
func Parse(text string) (*Module, error) {
	toks, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, m: &Module{}}
	for p.at < len(p.toks) {
		if err := p.top(); err != nil {
			return nil, err
		}
	}
	return p.m, nil
}

// peek is the next token's text; "" at the end.
func (p *parser) peek() string {
	if p.at < len(p.toks) {
		return p.toks[p.at].text
	}
	return ""
}

func (p *parser) line() int {
	if len(p.toks) == 0 {
		return 1
	}
	return p.toks[min(p.at, len(p.toks)-1)].line
}

func (p *parser) next() string {
	s := p.peek()
	p.at++
	return s
}

func (p *parser) accept(s string) bool {
	if p.peek() == s {
		p.at++
		return true
	}
	return false
}

func (p *parser) fail(format string, args ...any) error { return lineError(p.line(), format, args...) }

func (p *parser) expect(s string) error {
	if p.accept(s) {
		return nil
	}
	if p.at >= len(p.toks) {
		return p.fail("expected %q, but the text ends", s)
	}
	return p.fail("expected %q, got %q", s, p.peek())
}

func (p *parser) name() (string, error) {
	s := p.peek()
	if s == "" || !isWord(s[0]) || s[0] == '.' || s[0] == '%' || s[0] >= '0' && s[0] <= '9' {
		return "", p.fail("expected a name, got %q", s)
	}
	p.at++
	return s, nil
}

func (p *parser) integer() (int64, error) {
	neg := p.accept("-")
	s := p.peek()
	u, err := strconv.ParseUint(strings.TrimSuffix(s, "U"), 0, 64)
	if err != nil {
		return 0, p.fail("expected a number, got %q", s)
	}
	p.at++
	if neg {
		return -int64(u), nil
	}
	return int64(u), nil
}

// top reads a directive at the module's level.
func (p *parser) top() error {
	start := p.toks[p.at]
	switch start.text {
	case ".version":
		p.at++
		p.m.Version = p.next()
		return nil
	case ".target":
		p.at++
		p.m.Target = p.next()
		return nil
	case ".address_size":
		p.at++
		n, err := p.integer()
		p.m.AddressSize = int(n)
		return err
	}
	extern := false
	for {
		switch s := p.peek(); s {
		case ".visible", ".weak":
			p.at++
		case ".extern":
			p.at++
			extern = true
		case ".global", ".const", ".shared":
			v, err := p.variable()
			if extern && err == nil {
				p.m.externs = append(p.m.externs, token{start.line, v.Name})
				return nil
			}
			p.m.Vars = append(p.m.Vars, v)
			return err
		case ".entry":
			return p.entry(extern)
		case ".func":
			if extern {
				return p.externFunc(start.line)
			}
			return p.fail(".func: device functions are not used here; kernels call nothing")
		default:
			return p.fail("unexpected %q at the module's level", s)
		}
	}
}

// externFunc skips the declaration of an external function.
func (p *parser) externFunc(line int) error {
	name := ""
	for p.at < len(p.toks) && !p.accept(";") {
		s := p.next()
		if name == "" && isWord(s[0]) && s[0] != '.' && p.peek() == "(" {
			name = s
		}
	}
	p.m.externs = append(p.m.externs, token{line, name})
	return nil
}

// variable reads .space [.align n] .type name[count] [= {…}];
func (p *parser) variable() (*Var, error) {
	v := &Var{Line: p.line(), Space: p.next()[1:], Count: 1, Align: 1}
	if p.accept(".align") {
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		v.Align = int(n)
	}
	v.Type = strings.TrimPrefix(p.next(), ".")
	if sizeOf(v.Type) == 0 {
		return nil, lineError(v.Line, "unknown type %q of a variable", v.Type)
	}
	var err error
	if v.Name, err = p.name(); err != nil {
		return nil, err
	}
	if p.accept("[") {
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		v.Count = int(n)
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	if p.accept("=") {
		if err := p.initial(v); err != nil {
			return nil, err
		}
	}
	return v, p.expect(";")
}

func (p *parser) initial(v *Var) error {
	list := p.accept("{")
	for {
		s := ""
		if p.accept("-") {
			s = "-"
		}
		v.Init = append(v.Init, s+p.next())
		if !list {
			return nil
		}
		if p.accept("}") {
			break
		}
		if err := p.expect(","); err != nil {
			return err
		}
	}
	if len(v.Init) > v.Count {
		return lineError(v.Line, "variable %s has %d elements and %d initial values", v.Name, v.Count, len(v.Init))
	}
	return nil
}

// entry reads a kernel.
func (p *parser) entry(extern bool) error {
	e := &Entry{Line: p.line(), Regs: map[string]string{}, Labels: map[string]int{}}
	p.at++
	var err error
	if e.Name, err = p.name(); err != nil {
		return err
	}
	if p.accept("(") {
		for !p.accept(")") {
			if err := p.param(e); err != nil {
				return err
			}
			p.accept(",")
		}
	}
	if extern {
		p.m.externs = append(p.m.externs, token{e.Line, e.Name})
		return p.expect(";")
	}
	if p.accept(".maxntid") {
		for {
			n, err := p.integer()
			if err != nil {
				return err
			}
			e.MaxTID = append(e.MaxTID, int(n))
			if !p.accept(",") {
				break
			}
		}
	}
	if err := p.expect("{"); err != nil {
		return err
	}
	p.m.Entries = append(p.m.Entries, e)
	for !p.accept("}") {
		if p.at >= len(p.toks) {
			return p.fail("entry %s has no closing brace", e.Name)
		}
		if err := p.statement(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) param(e *Entry) error {
	if err := p.expect(".param"); err != nil {
		return err
	}
	typ := strings.TrimPrefix(p.next(), ".")
	if sizeOf(typ) == 0 {
		return p.fail("unknown type %q of a parameter", typ)
	}
	for strings.HasPrefix(p.peek(), ".") { // .ptr .global .align 4
		if p.next() == ".align" {
			if _, err := p.integer(); err != nil {
				return err
			}
		}
	}
	name, err := p.name()
	if err != nil {
		return err
	}
	for _, q := range e.Params {
		if q.Name == name {
			return p.fail("parameter %s is declared twice", name)
		}
	}
	e.Params = append(e.Params, Param{name, typ})
	return nil
}

// statement reads a declaration, a label or an instruction.
func (p *parser) statement(e *Entry) error {
	switch s := p.peek(); {
	case s == "{":
		return p.scope(e)
	case s == ".reg":
		return p.registers(e)
	case s == ".shared":
		v, err := p.variable()
		e.Vars = append(e.Vars, v)
		return err
	case p.at+1 < len(p.toks) && p.toks[p.at+1].text == ":":
		if _, twice := e.Labels[s]; twice {
			return p.fail("label %s is defined twice", s)
		}
		e.Labels[s] = len(e.Code)
		p.at += 2
		return nil
	}
	return p.instruction(e)
}

// scope reads { statements } within an entry.
func (p *parser) scope(e *Entry) error {
	if p.local != nil {
		return p.fail("scopes within scopes are not used here")
	}
	p.at++
	p.scopes++
	p.local = map[string]string{}
	defer func() { p.local = nil }()
	for !p.accept("}") {
		if p.at >= len(p.toks) {
			return p.fail("the text ends within { }")
		}
		if err := p.statement(e); err != nil {
			return err
		}
	}
	return nil
}

// register gives the name under which a register is known; ok is false for what is no register.
func (p *parser) register(s string) (name string, ok bool) {
	if r := p.local[s]; r != "" {
		return r, true
	}
	return s, strings.HasPrefix(s, "%") && !strings.Contains(s, ".")
}

// maxRegisters bounds what one declaration makes.
const maxRegisters = 1 << 20

// registers reads .reg .type %name<count>; or .reg .type %name;
func (p *parser) registers(e *Entry) error {
	p.at++
	typ := strings.TrimPrefix(p.next(), ".")
	if typ != "pred" && sizeOf(typ) == 0 {
		return p.fail("unknown register type %q", typ)
	}
	name := p.next()
	if p.local != nil && name != "" && isWord(name[0]) {
		p.local[name] = fmt.Sprintf("%%%s{%d}", strings.TrimPrefix(name, "%"), p.scopes)
		name = p.local[name]
	}
	if !strings.HasPrefix(name, "%") {
		return p.fail("expected a register, got %q", name)
	}
	names := []string{name}
	if p.accept("<") {
		n, err := p.integer()
		if err != nil {
			return err
		}
		if n < 0 || n > maxRegisters {
			return p.fail("%d registers", n)
		}
		names = names[:0]
		for i := range n {
			names = append(names, fmt.Sprintf("%s%d", name, i))
		}
		if err := p.expect(">"); err != nil {
			return err
		}
	}
	for _, r := range names {
		if e.Regs[r] != "" {
			return p.fail("register %s is declared twice", r)
		}
		e.Regs[r] = typ
	}
	return p.expect(";")
}

func (p *parser) instruction(e *Entry) error {
	in := Instr{Line: p.line()}
	if p.accept("@") {
		in.Not = p.accept("!")
		in.Guard = p.next()
	}
	if s := p.peek(); s == "" || s[0] < 'a' || s[0] > 'z' {
		return p.fail("expected an instruction, got %q", s)
	}
	in.Op = p.next()
	if in.Op == "call" || strings.HasPrefix(in.Op, "call.") {
		return lineError(in.Line, "%s of %s: kernels call nothing", in.Op, p.callee())
	}
	for !p.accept(";") {
		if len(in.Args) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		o, err := p.operand()
		if err != nil {
			return err
		}
		in.Args = append(in.Args, o)
	}
	e.Code = append(e.Code, in)
	return nil
}

// callee is the name in a call, for the message.
func (p *parser) callee() string {
	for i := p.at; i < len(p.toks) && p.toks[i].text != ";"; i++ {
		if s := p.toks[i].text; isWord(s[0]) && s[0] != '%' {
			return s
		}
	}
	return "?"
}

func (p *parser) operand() (Operand, error) {
	s := p.peek()
	name, isRegister := p.register(s)
	switch {
	case isRegister:
		p.at++
		return Operand{Kind: Register, Name: name}, nil
	case s == "[":
		p.at++
		return p.memory()
	case s == "{":
		p.at++
		o := Operand{Kind: Vector}
		for !p.accept("}") {
			name, _ := p.register(p.next())
			o.Elems = append(o.Elems, name)
			p.accept(",")
			if p.at >= len(p.toks) {
				return o, p.fail("the text ends within { }")
			}
		}
		return o, nil
	case strings.HasPrefix(s, "%"):
		p.at++
		return Operand{Kind: Special, Name: s}, nil
	case strings.HasPrefix(s, "0f") && len(s) == 10, strings.HasPrefix(s, "0d") && len(s) == 18:
		bits, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			return Operand{}, p.fail("bad number %q", s)
		}
		p.at++
		kind := Float32
		if s[1] == 'd' {
			kind = Float64
		}
		return Operand{Kind: kind, Int: int64(bits)}, nil
	case s == "-", s != "" && s[0] >= '0' && s[0] <= '9':
		n, err := p.integer()
		return Operand{Kind: Number, Int: n}, err
	}
	name, err := p.name()
	return Operand{Kind: Symbol, Name: name}, err
}

// memory reads the rest of [base], [base+n] or [n].
func (p *parser) memory() (Operand, error) {
	o := Operand{Kind: Memory}
	s := p.peek()
	if strings.HasPrefix(s, "%") || s != "" && isWord(s[0]) && (s[0] < '0' || s[0] > '9') {
		o.Name = p.next()
		if p.accept("+") || p.peek() == "-" {
			n, err := p.integer()
			if err != nil {
				return o, err
			}
			o.Int = n
		}
	} else {
		n, err := p.integer()
		if err != nil {
			return o, err
		}
		o.Int = n
	}
	return o, p.expect("]")
}

// sizeOf is the size of a PTX type in bytes; 0 for pred and for what is no type.
func sizeOf(typ string) int {
	if len(typ) < 2 || strings.IndexByte("busf", typ[0]) < 0 {
		return 0
	}
	switch typ[1:] {
	case "8":
		if typ[0] != 'f' {
			return 1
		}
	case "16":
		return 2
	case "32":
		return 4
	case "64":
		return 8
	}
	return 0
}
