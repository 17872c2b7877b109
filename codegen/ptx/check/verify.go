package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Check parses and verifies a module. The error joins everything that was found, a line each, with line numbers.
func Check(text string) error {
	m, err := Parse(text)
	if err != nil {
		return err
	}
	return m.Verify()
}

// targets are the architectures, with 10 times the PTX version that introduced them.
var targets = map[string]int{"sm_50": 40, "sm_52": 41, "sm_53": 42, "sm_60": 50, "sm_61": 50, "sm_62": 50, "sm_70": 60, "sm_72": 61, "sm_75": 63,
	"sm_80": 70, "sm_86": 71, "sm_87": 74, "sm_89": 78, "sm_90": 78, "sm_90a": 80}

// maxParamBytes is what every architecture takes.
const maxParamBytes = 4096

// maxSharedBytes is how much shared memory every architecture has for one block.
const maxSharedBytes = 48 << 10

// verifier collects what is wrong.
type verifier struct {
	m       *Module
	e       *Entry
	version int
	errs    []error
}

func (v *verifier) add(line int, format string, args ...any) {
	v.errs = append(v.errs, lineError(line, format, args...))
}

// Verify checks what the package's documentation lists.
func (m *Module) Verify() error {
	v := &verifier{m: m}
	v.header()
	for _, x := range m.externs {
		v.add(x.line, "unresolved .extern %s", x.text)
	}
	names := map[string]bool{}
	declare := func(line int, name string) {
		if names[name] {
			v.add(line, "%s is declared twice", name)
		}
		names[name] = true
	}
	constant := 0
	for _, x := range m.Vars {
		declare(x.Line, x.Name)
		v.variable(x)
		if x.Space == "const" {
			constant += x.Size()
		}
	}
	if constant > 64<<10 {
		v.add(1, "the module needs %d bytes of constant memory; there are 65536", constant)
	}
	for _, e := range m.Entries {
		declare(e.Line, e.Name)
		v.entry(e)
	}
	return errors.Join(v.errs...)
}

func (v *verifier) header() {
	m := v.m
	if m.Version == "" {
		v.add(1, ".version is missing")
	} else if major, minor, ok := strings.Cut(m.Version, "."); ok {
		a, err1 := strconv.Atoi(major)
		b, err2 := strconv.Atoi(minor)
		if v.version = 10*a + b; err1 != nil || err2 != nil || b > 9 {
			v.add(1, ".version %s is not a version", m.Version)
		}
	} else {
		v.add(1, ".version %s is not a version", m.Version)
	}
	first, known := targets[m.Target]
	switch {
	case m.Target == "":
		v.add(1, ".target is missing")
	case !known:
		v.add(1, ".target %s is not known", m.Target)
	case v.version < first:
		v.add(1, ".target %s needs .version %d.%d, not %s", m.Target, first/10, first%10, m.Version)
	}
	switch m.AddressSize {
	case 64:
	case 0:
		v.add(1, ".address_size is missing")
	default:
		v.add(1, ".address_size is %d, not 64", m.AddressSize)
	}
}

func (v *verifier) variable(x *Var) {
	if x.Align&(x.Align-1) != 0 || x.Align < 1 {
		v.add(x.Line, "variable %s: alignment %d is no power of two", x.Name, x.Align)
	}
	if x.Count < 1 {
		v.add(x.Line, "variable %s has %d elements", x.Name, x.Count)
	}
	if x.Space == "shared" && x.Init != nil {
		v.add(x.Line, "variable %s: shared memory has no initial values", x.Name)
	}
}

func (v *verifier) entry(e *Entry) {
	v.e = e
	bytes, shared := 0, 0
	for _, p := range e.Params {
		bytes += sizeOf(p.Type)
	}
	if bytes > maxParamBytes {
		v.add(e.Line, "entry %s has %d bytes of parameters; there may be %d", e.Name, bytes, maxParamBytes)
	}
	for _, x := range slices.Concat(e.Vars, v.m.Vars) {
		if x.Space == "shared" {
			shared += x.Size()
		}
	}
	for _, x := range e.Vars {
		v.variable(x)
	}
	if shared > maxSharedBytes {
		v.add(e.Line, "entry %s needs %d bytes of shared memory; there are %d", e.Name, shared, maxSharedBytes)
	}
	returns := false
	for i := range e.Code {
		v.instruction(&e.Code[i])
		returns = returns || e.Code[i].Op == "ret"
	}
	if !returns {
		v.add(e.Line, "entry %s has no ret", e.Name)
	}
	for _, label := range slices.Sorted(maps.Keys(e.Labels)) {
		if e.Labels[label] == len(e.Code) {
			v.add(e.Line, "entry %s: nothing follows label %s", e.Name, label)
		}
	}
	if n := len(e.Code); n > 0 {
		last := e.Code[n-1]
		if ends := last.Op == "ret" || last.Op == "bra" || last.Op == "bra.uni"; !ends || last.Guard != "" {
			v.add(last.Line, "entry %s does not end in ret: control runs off its end", e.Name)
		}
	}
}

// inexact explains instructions that would be legal but do not compute what gtc's numerics demand.
func inexact(op string) string {
	parts := strings.Split(op, ".")
	has := func(s string) bool { return slices.Contains(parts, s) }
	isFloat := has("f32") || has("f64")
	switch {
	case has("approx"), has("full"):
		return "approximate"
	case has("ftz"):
		return "flushes subnormals to zero"
	case parts[0] == "fma", parts[0] == "mad" && isFloat:
		return "fused multiply-add: the product must be rounded before it is added"
	case isFloat && slices.Contains([]string{"add", "sub", "mul"}, parts[0]) && !has("rn"):
		return "without .rn it may be contracted to a fused multiply-add"
	case isFloat && (parts[0] == "min" || parts[0] == "max"):
		return "drops NaN"
	case has("f16"), has("f16x2"), has("bf16"), has("bf16x2"):
		return "half types are converted by integer arithmetic, so that every architecture has them"
	}
	return ""
}

func (v *verifier) instruction(in *Instr) {
	if in.Guard != "" && v.e.Regs[in.Guard] != "pred" {
		v.add(in.Line, "guard %s of %s is not a declared predicate register", in.Guard, in.Op)
	}
	if why := inexact(in.Op); why != "" {
		v.add(in.Line, "%s: %s", in.Op, why)
		return
	}
	form, ok := forms[in.Op]
	if !ok {
		v.add(in.Line, "instruction %s is not one that gtc's kernels use", in.Op)
		return
	}
	if form.version > v.version {
		v.add(in.Line, "%s needs .version %d.%d, not %s", in.Op, form.version/10, form.version%10, v.m.Version)
	}
	if len(in.Args) != len(form.args) {
		v.add(in.Line, "%s takes %d operands, got %d", in.Op, len(form.args), len(in.Args))
		return
	}
	for i, want := range form.args {
		if why := v.operand(in, want, in.Args[i], i < form.dests); why != "" {
			v.add(in.Line, "%s: operand %d: %s", in.Op, i+1, why)
		}
	}
}

// operand judges one operand; "" is good. want is a type, or one of: "label", "zero", a memory space followed by a type ("global f32"),
// a type followed by "+" where the register may be wider.
func (v *verifier) operand(in *Instr, want string, o Operand, dest bool) string {
	if space, typ, ok := strings.Cut(want, " "); ok {
		return v.memory(space, typ, o)
	}
	switch want {
	case "label":
		if _, ok := v.e.Labels[o.Name]; o.Kind != Symbol || !ok {
			return fmt.Sprintf("there is no label %s in entry %s", o.Name, v.e.Name)
		}
		return ""
	case "number":
		if o.Kind != Number {
			return "expected a number"
		}
		return ""
	}
	typ, wider := strings.CutSuffix(want, "+")
	switch o.Kind {
	case Register:
		return v.register(o.Name, typ, wider)
	case Vector:
		if !strings.HasPrefix(in.Op, "mov.b") || len(o.Elems) < 2 || sizeOf(typ)%len(o.Elems) != 0 {
			return "unexpected vector"
		}
		for _, r := range o.Elems {
			if why := v.register(r, fmt.Sprintf("b%d", 8*sizeOf(typ)/len(o.Elems)), false); why != "" {
				return why
			}
		}
		return ""
	}
	if dest {
		return "the result must be a register"
	}
	return v.value(in, typ, o)
}

// value judges a source operand that is no register.
func (v *verifier) value(in *Instr, typ string, o Operand) string {
	switch o.Kind {
	case Special:
		if in.Op != "mov.u32" || !slices.Contains(specials, o.Name) {
			return fmt.Sprintf("unexpected special register %s", o.Name)
		}
	case Number:
		switch bits := 8 * sizeOf(typ); {
		case typ == "pred":
			if o.Int != 0 && o.Int != -1 && o.Int != 1 {
				return "expected a predicate"
			}
		case typ[0] == 'f':
			return fmt.Sprintf("the integer %d where a float is expected", o.Int)
		case bits < 64 && (o.Int < -1<<(bits-1) || o.Int >= 1<<bits):
			return fmt.Sprintf("%d does not fit %d bits", o.Int, bits)
		}
	case Float32:
		if typ != "f32" {
			return fmt.Sprintf("an f32 number where %s is expected", typ)
		}
	case Float64:
		if typ != "f64" {
			return fmt.Sprintf("an f64 number where %s is expected", typ)
		}
	case Symbol:
		if in.Op != "mov.u64" || v.lookup(o.Name) == nil {
			return fmt.Sprintf("there is no variable %s", o.Name)
		}
	default:
		return "unexpected operand"
	}
	return ""
}

// specials are the special registers in use.
var specials = []string{"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x"}

// register judges a register where a type is wanted.
func (v *verifier) register(name, typ string, wider bool) string {
	have := v.e.Regs[name]
	switch {
	case have == "":
		return fmt.Sprintf("register %s is not declared", name)
	case have == "pred" || typ == "pred":
		if have != typ {
			return fmt.Sprintf("register %s is .%s, expected .%s", name, have, typ)
		}
	case sizeOf(have) < sizeOf(typ) || sizeOf(have) > sizeOf(typ) && !wider:
		return fmt.Sprintf("register %s is .%s, expected .%s", name, have, typ)
	case have[0] == 'b' || typ[0] == 'b':
	case (have[0] == 'f') != (typ[0] == 'f'):
		return fmt.Sprintf("register %s is .%s, expected .%s", name, have, typ)
	}
	return ""
}

func (v *verifier) lookup(name string) *Var {
	for _, x := range slices.Concat(v.e.Vars, v.m.Vars) {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// memory judges an address in a space.
func (v *verifier) memory(space, typ string, o Operand) string {
	if o.Kind != Memory {
		return "expected an address in [ ]"
	}
	size := int64(sizeOf(typ))
	if strings.HasPrefix(o.Name, "%") {
		if space == "param" {
			return "parameters are read by name"
		}
		return v.register(o.Name, "b64", false)
	}
	if space == "param" {
		for _, p := range v.e.Params {
			if p.Name == o.Name {
				if o.Int < 0 || o.Int+size > int64(sizeOf(p.Type)) {
					return fmt.Sprintf("reads beyond parameter %s", o.Name)
				}
				return ""
			}
		}
		return fmt.Sprintf("entry %s has no parameter %s", v.e.Name, o.Name)
	}
	x := v.lookup(o.Name)
	switch {
	case x == nil:
		return fmt.Sprintf("there is no variable %s", o.Name)
	case x.Space != space:
		return fmt.Sprintf("variable %s is in .%s", o.Name, x.Space)
	case o.Int < 0 || o.Int+size > int64(x.Size()):
		return fmt.Sprintf("[%s%+d] is outside of the variable", o.Name, o.Int)
	case o.Int%size != 0 || int64(x.Align)%size != 0:
		return fmt.Sprintf("[%s%+d] is not aligned to %d bytes", o.Name, o.Int, size)
	}
	return ""
}
