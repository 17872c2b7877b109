package script

import (
	"strings"

	"github.com/gtc-project/gtc/ir"
)

// strParam is a parameter of a string method behind the string itself.
type strParam struct {
	name     string
	t        ir.Type
	optional bool
	deflt    ir.Datum
}

var (
	optInt       = ir.OptionalOf(ir.Int)
	searchParams = []strParam{{name: "substr", t: ir.Str}, {name: "start", t: optInt, optional: true}, {name: "end", t: optInt, optional: true}}
	stripParams  = []strParam{{name: "chars", t: ir.OptionalOf(ir.Str), optional: true}}
	padParams    = []strParam{{name: "width", t: ir.Int}, {name: "fillchar", t: ir.Str, optional: true, deflt: " "}}
	splitParams  = []strParam{{name: "separator", t: ir.OptionalOf(ir.Str), optional: true}, {name: "max", t: ir.Int, optional: true, deflt: int64(-1)}}
	partParams   = []strParam{{name: "separator", t: ir.Str}}
)

// stringMethods lists the methods of strings; each is the op str_NAME.
var stringMethods = map[string][]strParam{
	"upper": nil, "lower": nil, "title": nil, "swapcase": nil, "capitalize": nil,
	"isalpha": nil, "isdigit": nil, "isdecimal": nil, "isnumeric": nil, "isalnum": nil, "isspace": nil, "isupper": nil, "islower": nil, "istitle": nil,
	"isprintable": nil, "isidentifier": nil,
	"find": searchParams, "rfind": searchParams, "index": searchParams, "rindex": searchParams, "count": searchParams, "startswith": searchParams, "endswith": searchParams,
	"strip": stripParams, "lstrip": stripParams, "rstrip": stripParams, "ljust": padParams, "rjust": padParams, "center": padParams,
	"zfill": {{name: "width", t: ir.Int}}, "expandtabs": {{name: "tabsize", t: ir.Int, optional: true, deflt: int64(8)}},
	"replace": {{name: "old", t: ir.Str}, {name: "new", t: ir.Str}, {name: "max", t: ir.Int, optional: true, deflt: int64(-1)}},
	"split":   splitParams, "rsplit": splitParams, "partition": partParams, "rpartition": partParams,
	"splitlines": {{name: "keepends", t: ir.BoolT, optional: true, deflt: false}}, "join": {{name: "values", t: ir.ListOf(ir.Str)}},
}

// stringMethod lowers s.name(…).
func (l *lowering) stringMethod(s *scalarV, name string, args []value, kws []kwValue, p Pos) value {
	if name == "format" {
		irs := []*ir.Value{s.v}
		for _, a := range args {
			irs = append(irs, l.irOf(a))
		}
		return scalarOf(l.op("str_format", irs...))
	}
	params, ok := stringMethods[name]
	if !ok {
		l.fail(p, "'str' object has no attribute or method '%s'", short(name))
	}
	if len(args) > len(params) {
		l.fail(p, "str.%s() takes at most %d arguments, got %d", name, len(params), len(args))
	}
	given := append(append(make([]value, 0, len(params)), args...), make([]value, len(params)-len(args))...)
	for _, k := range kws {
		found := false
		for i, prm := range params {
			if prm.name == k.name && given[i] == nil {
				given[i], found = k.v, true
			}
		}
		if !found {
			l.fail(k.pos, "str.%s() got an unexpected keyword argument '%s'", name, short(k.name))
		}
	}
	irs := []*ir.Value{s.v}
	for i, prm := range params {
		switch {
		case given[i] != nil:
			irs = append(irs, l.irOf(l.coerce(given[i], prm.t, p, "str."+name+"(): argument '"+prm.name+"'")))
		case prm.optional:
			irs = append(irs, l.constant(prm.deflt))
		default:
			l.fail(p, "str.%s() is missing a value for argument '%s'", name, prm.name)
		}
	}
	l.at(p)
	v := l.op("str_"+name, irs...)
	return l.valueOf(v, v.Type)
}

// stringItem lowers s[i] and s[a:b:c].
func (l *lowering) stringItem(s *scalarV, e *indexExpr) value {
	if slice, ok := e.subs[0].(*sliceExpr); ok && len(e.subs) == 1 {
		lo, hi, step := l.sliceBounds(slice)
		return scalarOf(l.op("str_slice", s.v, lo, hi, step))
	}
	return scalarOf(l.op("str_get", s.v, l.listIndex(e)))
}

// characters is the list of a string's characters.
func (l *lowering) characters(s *scalarV) *refV {
	v := l.op("str_chars", s.v)
	return l.fresh(v, v.Type)
}

// percent is the % operator on a format string.
func (l *lowering) percent(format *scalarV, args []value, p Pos) value {
	d, ok := format.v.Const()
	if !ok {
		l.fail(p, "the format on the left of %% must be a literal string")
	}
	braces, n, bad := bracesOf(d.(string))
	if bad != "" {
		l.fail(p, "the format specifier '%s' is not supported", short(bad))
	}
	if n != len(args) {
		l.fail(p, "the format takes %d arguments, got %d", n, len(args))
	}
	irs := []*ir.Value{l.constant(braces)}
	for _, a := range args {
		irs = append(irs, l.irOf(a))
	}
	return scalarOf(l.op("str_format", irs...))
}

// bracesOf writes a format for % as one for str.format; n is the number of values that it takes.
func bracesOf(format string) (braces string, n int, bad string) {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			if c == '{' || c == '}' {
				out.WriteByte(c)
			}
			out.WriteByte(c)
			continue
		}
		j := i + 1
		for j < len(format) && strings.IndexByte("0123456789.+- #", format[j]) >= 0 {
			j++
		}
		if j == len(format) {
			return "", 0, format[i:]
		}
		flags, kind := format[i+1:j], format[j]
		i = j
		if kind == '%' {
			out.WriteByte('%')
			continue
		}
		if strings.IndexByte("sdifFeEgGxXorc", kind) < 0 {
			return "", 0, "%" + flags + string(kind)
		}
		n++
		out.WriteString("{")
		if kind == 'r' {
			out.WriteString("!r")
		}
		out.WriteString(":")
		rest := strings.TrimLeft(flags, "+- #0")
		for _, f := range []struct{ flag, mark string }{{"-", "<"}, {"+", "+"}, {" ", " "}, {"0", "0"}} {
			if strings.Contains(flags[:len(flags)-len(rest)], f.flag) {
				out.WriteString(f.mark)
			}
		}
		if !strings.Contains(flags, "-") && (kind == 's' || kind == 'r') && rest != "" && rest[0] != '.' {
			out.WriteString(">")
		}
		out.WriteString(rest)
		if kind != 's' && kind != 'r' {
			out.WriteByte(kind)
		}
		out.WriteString("}")
	}
	return strings.ReplaceAll(out.String(), ":}", "}"), n, ""
}

// fstring lowers an f-string.
func (l *lowering) fstring(e *fstrExpr) value {
	var format strings.Builder
	args := []*ir.Value{nil}
	for i, part := range e.parts {
		if s, ok := part.(*strExpr); ok && e.specs[i] == "" {
			format.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(s.v))
			continue
		}
		if strings.ContainsAny(e.specs[i], "{}") {
			l.fail(e.pos, "f-string: a format that is computed is not supported")
		}
		format.WriteString("{" + e.specs[i] + "}")
		args = append(args, l.irOf(l.expr(part)))
	}
	l.at(e.pos)
	args[0] = l.constant(format.String())
	return scalarOf(l.op("str_format", args...))
}
