package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Ops on strings, with Python's meaning: a string is a sequence of characters. Arguments that Python lets out are operands, too;
// None stands for a bound or separator that is not given.

var strList = ListOf(Str)

// strArgs reads the operands of a string op.
type strArgs struct{ c *EvalCall }

func (a strArgs) str(i int) string { return a.c.Args[i].(string) }
func (a strArgs) int(i int) int    { return a.c.Int(i) }

// span is the part of string 0 between the bounds in operands i and i+1, and the number of characters before it; ok is false
// where the start lies behind the end.
func (a strArgs) span(i int) (part string, before int, ok bool) {
	r := []rune(a.str(0))
	lo, hi := 0, len(r)
	if v, given := a.c.Args[i].(int64); given {
		lo = insertPlaceUnclamped(int(v), len(r))
	}
	if v, given := a.c.Args[i+1].(int64); given {
		hi = insertPlace(int(v), len(r))
	}
	if lo > hi {
		return "", 0, false
	}
	return string(r[lo:hi]), lo, true
}

func insertPlaceUnclamped(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(i, 0)
}

func initStrings() {
	str := func(name, params, doc string, t Type, f func(a strArgs) (Datum, error)) *Op {
		return host("str_"+name, params, doc, is(t), func(c *EvalCall) (Datum, error) { return f(strArgs{c}) })
	}
	noErr := func(f func(a strArgs) Datum) func(a strArgs) (Datum, error) {
		return func(a strArgs) (Datum, error) { return f(a), nil }
	}
	str("add", "a b", "a + b on strings.", Str, noErr(func(a strArgs) Datum { return a.str(0) + a.str(1) }))
	str("contains", "s part", "part in s.", BoolT, noErr(func(a strArgs) Datum { return strings.Contains(a.str(0), a.str(1)) }))
	str("len", "s", "len(s) in characters.", Int, noErr(func(a strArgs) Datum { return int64(len([]rune(a.str(0)))) }))
	host("str_format", "format args...", "format.format(args…), with {}, {i}, {!r} and {:spec}.", is(Str), func(c *EvalCall) (Datum, error) {
		return formatBraces(c.Args[0].(string), c.Args[1:])
	})
	LookupOp("str_format").Effect = MayFail
	str("chars", "s", "The characters of s as a list.", strList, noErr(func(a strArgs) Datum {
		var out []Datum
		for _, r := range a.str(0) {
			out = append(out, string(r))
		}
		return NewList(out...)
	}))
	mayFail(str("get", "s i", "s[i]; i may be negative.", Str, func(a strArgs) (Datum, error) {
		r := []rune(a.str(0))
		i := a.int(1)
		if i < 0 {
			i += len(r)
		}
		if i < 0 || i >= len(r) {
			return nil, fmt.Errorf("string index out of range: index %d of a string of length %d", a.int(1), len(r))
		}
		return string(r[i]), nil
	}))
	mayFail(str("slice", "s start stop step", "s[start:stop:step]; each may be None.", Str, func(a strArgs) (Datum, error) {
		r := []rune(a.str(0))
		idx, err := sliceIndices(a.c, len(r))
		out := make([]rune, len(idx))
		for k, i := range idx {
			out[k] = r[i]
		}
		return string(out), err
	}))
	initStringCase(str, noErr)
	initStringSearch(str, noErr)
	initStringSplit(str, noErr)
	mayFail(str("ord", "s", "ord(s) of one character.", Int, func(a strArgs) (Datum, error) {
		r := []rune(a.str(0))
		if len(r) != 1 {
			return nil, fmt.Errorf("ord() expected a character, but string of length %d found", len(r))
		}
		return int64(r[0]), nil
	}))
	mayFail(host("py_chr", "i", "chr(i).", is(Str), func(c *EvalCall) (Datum, error) {
		if i := c.Int(0); i < 0 || i > unicode.MaxRune {
			return nil, fmt.Errorf("chr() arg not in range(0x110000): %d", i)
		}
		return string(rune(c.Int(0))), nil
	}))
	for name, base := range map[string]struct {
		n      int
		prefix string
	}{"hex": {16, "0x"}, "oct": {8, "0o"}, "bin": {2, "0b"}} {
		host("py_"+name, "i", name+"(i).", is(Str), func(c *EvalCall) (Datum, error) {
			s := strconv.FormatInt(int64(c.Int(0)), base.n)
			if digits, neg := strings.CutPrefix(s, "-"); neg {
				return "-" + base.prefix + digits, nil
			}
			return base.prefix + s, nil
		})
	}
}

type strRow func(name, params, doc string, t Type, f func(a strArgs) (Datum, error)) *Op
type strPure func(f func(a strArgs) Datum) func(a strArgs) (Datum, error)

// initStringCase registers tests of characters, and what changes or pads them.
func initStringCase(str strRow, noErr strPure) {
	for name, f := range map[string]func(string) string{
		"upper": strings.ToUpper, "lower": strings.ToLower, "title": titleCase,
		"swapcase": func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsUpper(r) {
					return unicode.ToLower(r)
				}
				return unicode.ToUpper(r)
			}, s)
		},
		"capitalize": func(s string) string {
			r := []rune(strings.ToLower(s))
			if len(r) > 0 {
				r[0] = unicode.ToUpper(r[0])
			}
			return string(r)
		},
	} {
		str(name, "s", "s."+name+"().", Str, noErr(func(a strArgs) Datum { return f(a.str(0)) }))
	}
	every := func(s string, ok func(r rune) bool) bool {
		for _, r := range s {
			if !ok(r) {
				return false
			}
		}
		return s != ""
	}
	cased := func(s string, want, not func(r rune) bool) bool {
		return strings.IndexFunc(s, want) >= 0 && strings.IndexFunc(s, not) < 0
	}
	letterOrDigit := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	for name, f := range map[string]func(s string) bool{
		"isalpha": func(s string) bool { return every(s, unicode.IsLetter) }, "isdigit": func(s string) bool { return every(s, unicode.IsDigit) },
		"isdecimal": func(s string) bool { return every(s, unicode.IsDigit) }, "isnumeric": func(s string) bool { return every(s, unicode.IsNumber) },
		"isalnum": func(s string) bool { return every(s, letterOrDigit) }, "isspace": func(s string) bool { return every(s, unicode.IsSpace) },
		"isupper":     func(s string) bool { return cased(s, unicode.IsUpper, unicode.IsLower) },
		"islower":     func(s string) bool { return cased(s, unicode.IsLower, unicode.IsUpper) },
		"istitle":     func(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 && titleCase(s) == s },
		"isprintable": func(s string) bool { return s == "" || every(s, unicode.IsPrint) },
		"isidentifier": func(s string) bool {
			word := func(r rune) bool { return r == '_' || letterOrDigit(r) }
			return every(s, word) && !unicode.IsNumber([]rune(s)[0])
		},
	} {
		str(name, "s", "s."+name+"().", BoolT, noErr(func(a strArgs) Datum { return f(a.str(0)) }))
	}
	for name, f := range map[string]func(room int) int{
		"ljust": func(int) int { return 0 }, "rjust": func(room int) int { return room }, "center": func(room int) int { return room / 2 },
	} {
		mayFail(str(name, "s width fill", "s."+name+"(width, fill).", Str, func(a strArgs) (Datum, error) {
			fill := a.str(2)
			if len([]rune(fill)) != 1 {
				return nil, fmt.Errorf("the fill character must be exactly one character long, got %q", fill)
			}
			room := max(a.int(1)-len([]rune(a.str(0))), 0)
			if room > 1<<24 {
				return nil, fmt.Errorf("a string of %d characters is too long", a.int(1))
			}
			left := f(room)
			return strings.Repeat(fill, left) + a.str(0) + strings.Repeat(fill, room-left), nil
		}))
	}
	mayFail(str("zfill", "s width", "s.zfill(width).", Str, func(a strArgs) (Datum, error) {
		s := a.str(0)
		room := max(a.int(1)-len([]rune(s)), 0)
		if room > 1<<24 {
			return nil, fmt.Errorf("a string of %d characters is too long", a.int(1))
		}
		sign := ""
		if s != "" && (s[0] == '-' || s[0] == '+') {
			sign, s = s[:1], s[1:]
		}
		return sign + strings.Repeat("0", room) + s, nil
	}))
	str("expandtabs", "s size", "s.expandtabs(size).", Str, noErr(func(a strArgs) Datum {
		var out strings.Builder
		col := 0
		for _, r := range a.str(0) {
			switch n := a.int(1); {
			case r == '\t' && n > 0:
				k := min(n-col%n, 1<<16)
				out.WriteString(strings.Repeat(" ", k))
				col += k
			case r == '\t':
			case r == '\n':
				out.WriteRune(r)
				col = 0
			default:
				out.WriteRune(r)
				col++
			}
		}
		return out.String()
	}))
	for name, f := range map[string]func(s, cut string) string{"strip": strings.Trim, "lstrip": strings.TrimLeft, "rstrip": strings.TrimRight} {
		str(name, "s chars", "s."+name+"(chars); None means white space.", Str, noErr(func(a strArgs) Datum {
			if chars, ok := a.c.Args[1].(string); ok {
				return f(a.str(0), chars)
			}
			return f(a.str(0), " \t\n\v\f\r")
		}))
	}
}

func titleCase(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		first := !inWord
		inWord = unicode.IsLetter(r)
		if first {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// initStringSearch registers what looks for parts of a string.
func initStringSearch(str strRow, noErr strPure) {
	at := func(find func(s, part string) int) func(a strArgs) int64 {
		return func(a strArgs) int64 {
			part, before, ok := a.span(2)
			if !ok {
				return -1
			}
			i := find(part, a.str(1))
			if i < 0 {
				return -1
			}
			return int64(before + len([]rune(part[:i])))
		}
	}
	for name, f := range map[string]func(a strArgs) int64{"find": at(strings.Index), "rfind": at(strings.LastIndex)} {
		str(name, "s part start end", "s."+name+"(part, start, end).", Int, noErr(func(a strArgs) Datum { return f(a) }))
		index := strings.Replace(name, "find", "index", 1)
		mayFail(str(index, "s part start end", "s."+index+"(part, start, end).", Int, func(a strArgs) (Datum, error) {
			if i := f(a); i >= 0 {
				return i, nil
			}
			return nil, &RaiseError{"ValueError", "substring not found"}
		}))
	}
	str("count", "s part start end", "s.count(part, start, end).", Int, noErr(func(a strArgs) Datum {
		part, _, ok := a.span(2)
		if !ok {
			return int64(0)
		}
		return int64(strings.Count(part, a.str(1)))
	}))
	for name, f := range map[string]func(s, part string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix} {
		str(name, "s part start end", "s."+name+"(part, start, end).", BoolT, noErr(func(a strArgs) Datum {
			part, _, ok := a.span(2)
			return ok && f(part, a.str(1))
		}))
	}
	str("replace", "s old new count", "s.replace(old, new, count); a negative count means all.", Str, noErr(func(a strArgs) Datum {
		return strings.Replace(a.str(0), a.str(1), a.str(2), a.int(3))
	}))
}

// initStringSplit registers what takes strings apart and joins them.
func initStringSplit(str strRow, noErr strPure) {
	for _, right := range []bool{false, true} {
		name, part := "split", "partition"
		if right {
			name, part = "rsplit", "rpartition"
		}
		mayFail(str(name, "s sep max", "s."+name+"(sep, max); sep None means white space, a negative max no limit.", strList, func(a strArgs) (Datum, error) {
			sep, given := a.c.Args[1].(string)
			if given && sep == "" {
				return nil, &RaiseError{"ValueError", "empty separator"}
			}
			return stringList(splitString(a.str(0), sep, given, a.int(2), right)), nil
		}))
		mayFail(host("str_"+part, "s sep", "s."+part+"(sep).", is(TupleOf(Str, Str, Str)), func(c *EvalCall) (Datum, error) {
			s, sep := c.Args[0].(string), c.Args[1].(string)
			if sep == "" {
				return nil, &RaiseError{"ValueError", "empty separator"}
			}
			i := strings.Index(s, sep)
			if right {
				i = strings.LastIndex(s, sep)
			}
			switch {
			case i >= 0:
				return Tuple{s[:i], sep, s[i+len(sep):]}, nil
			case right:
				return Tuple{"", "", s}, nil
			}
			return Tuple{s, "", ""}, nil
		}))
	}
	str("splitlines", "s keep", "s.splitlines(keep).", strList, noErr(func(a strArgs) Datum {
		var out []string
		for line := range strings.Lines(strings.ReplaceAll(a.str(0), "\r\n", "\n")) {
			if !a.c.Bool(1) {
				line = strings.TrimSuffix(line, "\n")
			}
			out = append(out, line)
		}
		return stringList(out)
	}))
	str("join", "sep parts", "sep.join(parts).", Str, noErr(func(a strArgs) Datum {
		parts := a.c.Args[1].(List).Elems()
		out := make([]string, len(parts))
		for i, p := range parts {
			out[i] = p.(string)
		}
		return strings.Join(out, a.str(0))
	}))
}

func stringList(parts []string) Datum {
	out := make([]Datum, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return NewList(out...)
}

// splitString splits at a separator, or at runs of white space where none is given, at most limit times (from the right).
func splitString(s, sep string, given bool, limit int, right bool) []string {
	var parts []string
	cut := func(s string) (head, tail string, ok bool) {
		switch {
		case !given && right:
			s = strings.TrimRightFunc(s, unicode.IsSpace)
			if i := strings.LastIndexFunc(s, unicode.IsSpace); i >= 0 {
				head = strings.TrimRightFunc(s[:i], unicode.IsSpace)
				return head, strings.TrimLeftFunc(s[i:], unicode.IsSpace), head != ""
			}
		case !given:
			if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
				tail = strings.TrimLeftFunc(s[i:], unicode.IsSpace)
				return s[:i], tail, tail != ""
			}
		case right:
			if i := strings.LastIndex(s, sep); i >= 0 {
				return s[:i], s[i+len(sep):], true
			}
		default:
			return strings.Cut(s, sep)
		}
		return s, "", false
	}
	if !given {
		if limit < 0 {
			return strings.Fields(s)
		}
		if right {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		} else {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if s == "" {
			return nil
		}
	}
	for ; limit != 0; limit-- {
		head, tail, ok := cut(s)
		if !ok {
			break
		}
		if right {
			parts, s = append([]string{tail}, parts...), head
		} else {
			parts, s = append(parts, head), tail
		}
	}
	if right {
		return append([]string{s}, parts...)
	}
	return append(parts, s)
}

// formatBraces is Python's str.format.
func formatBraces(format string, args []Datum) (Datum, error) {
	var sb strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		ch := format[i]
		switch {
		case (ch == '{' || ch == '}') && i+1 < len(format) && format[i+1] == ch:
			sb.WriteByte(ch)
			i++
		case ch == '{':
			end := strings.IndexByte(format[i:], '}')
			if end < 0 {
				return nil, &RaiseError{"ValueError", "single '{' in format string"}
			}
			field, spec, _ := strings.Cut(format[i+1:i+end], ":")
			field, repr := strings.CutSuffix(field, "!r")
			k := next
			if field = strings.TrimSuffix(field, "!s"); field != "" {
				n, err := strconv.Atoi(field)
				if err != nil {
					return nil, &RaiseError{"ValueError", fmt.Sprintf("format field {%s} is not supported: use {} or {0}", field)}
				}
				k = n
			}
			if k < 0 || k >= len(args) {
				return nil, &RaiseError{"IndexError", fmt.Sprintf("format string needs argument %d, got %d", k, len(args))}
			}
			arg := args[k]
			if repr {
				arg = pyRepr(arg)
			}
			text, err := formatSpec(arg, spec)
			if err != nil {
				return nil, err
			}
			sb.WriteString(text)
			next++
			i += end
		default:
			sb.WriteByte(ch)
		}
	}
	return sb.String(), nil
}

// formatSpec is Python's format(d, spec) for numbers, strings and what else prints without a spec:
// [[fill]align][sign][0][width][,][.precision][type].
func formatSpec(d Datum, spec string) (string, error) {
	if spec == "" {
		return PyString(d), nil
	}
	bad := func(why string) error {
		return &RaiseError{"ValueError", fmt.Sprintf("format specifier '%s': %s", spec, why)}
	}
	s := []rune(spec)
	fill, align, sign := ' ', rune(0), rune(0)
	switch {
	case len(s) > 1 && strings.ContainsRune("<>^=", s[1]):
		fill, align, s = s[0], s[1], s[2:]
	case strings.ContainsRune("<>^=", s[0]):
		align, s = s[0], s[1:]
	}
	if len(s) > 0 && strings.ContainsRune("+- ", s[0]) {
		sign, s = s[0], s[1:]
	}
	if len(s) > 0 && s[0] == '0' {
		if s = s[1:]; align == 0 {
			fill, align = '0', '='
		}
	}
	number := func(deflt int) (n int) {
		i := 0
		for i < len(s) && i < 5 && unicode.IsDigit(s[i]) {
			i++
		}
		if i == 0 {
			return deflt
		}
		n, _ = strconv.Atoi(string(s[:i]))
		s = s[i:]
		return n
	}
	width := number(0)
	comma := len(s) > 0 && s[0] == ','
	if comma {
		s = s[1:]
	}
	precision := -1
	if len(s) > 0 && s[0] == '.' {
		s = s[1:]
		if precision = number(-1); precision < 0 {
			return "", bad("the precision is missing")
		}
	}
	kind := rune(0)
	if len(s) > 0 {
		kind, s = s[0], s[1:]
	}
	if len(s) > 0 {
		return "", bad("not understood")
	}
	text, isNumber, err := formatValue(d, kind, precision)
	if err != nil {
		return "", bad(err.Error())
	}
	head := ""
	if isNumber {
		if rest, neg := strings.CutPrefix(text, "-"); neg {
			head, text = "-", rest
		} else if sign == '+' || sign == ' ' {
			head = string(sign)
		}
		if comma {
			text = groupThousands(text)
		}
	}
	if align == 0 {
		align = '<'
		if isNumber {
			align = '>'
		}
	}
	room := max(width-len([]rune(head+text)), 0)
	pad := func(n int) string { return strings.Repeat(string(fill), n) }
	switch align {
	case '<':
		return head + text + pad(room), nil
	case '^':
		return pad(room/2) + head + text + pad(room-room/2), nil
	case '=':
		return head + pad(room) + text, nil
	}
	return pad(room) + head + text, nil
}

// formatValue formats a value by the type letter of a format specifier.
func formatValue(d Datum, kind rune, precision int) (text string, isNumber bool, err error) {
	switch kind {
	case 0, 's':
		_, f, isFloat, numErr := num(d)
		if isBool := TypeOf(d).Kind == KBool; kind == 0 && numErr == nil && !isBool {
			if isFloat && precision >= 0 {
				return formatGeneral(f, precision, 'g'), true, nil
			}
			return PyString(d), true, nil
		}
		r := []rune(PyString(d))
		if precision >= 0 && precision < len(r) {
			r = r[:precision]
		}
		return string(r), false, nil
	case 'd', 'i', 'x', 'X', 'o', 'b', 'c':
		i, f, isFloat, err := num(d)
		if err != nil {
			return "", false, err
		}
		if isFloat {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return "", false, fmt.Errorf("cannot convert float %s to int", PyString(f))
			}
			i = int64(f)
		}
		switch kind {
		case 'x':
			return strconv.FormatInt(i, 16), true, nil
		case 'X':
			return strings.ToUpper(strconv.FormatInt(i, 16)), true, nil
		case 'o':
			return strconv.FormatInt(i, 8), true, nil
		case 'b':
			return strconv.FormatInt(i, 2), true, nil
		case 'c':
			return string(rune(i)), false, nil
		}
		return strconv.FormatInt(i, 10), true, nil
	case 'f', 'F', 'e', 'E', 'g', 'G', '%':
		_, f, _, err := num(d)
		if err != nil {
			return "", false, err
		}
		if precision < 0 {
			precision = 6
		}
		switch kind {
		case '%':
			return strconv.FormatFloat(f*100, 'f', precision, 64) + "%", true, nil
		case 'g', 'G':
			return formatGeneral(f, precision, byte(kind)), true, nil
		case 'F':
			kind = 'f'
		}
		return pySpecial(strconv.FormatFloat(f, byte(kind), precision, 64)), true, nil
	}
	return "", false, fmt.Errorf("unknown type '%c'", kind)
}

// formatGeneral is C's %g: precision significant digits without trailing zeros.
func formatGeneral(f float64, precision int, kind byte) string {
	precision = max(precision, 1)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return pySpecial(strconv.FormatFloat(f, 'g', -1, 64))
	}
	exp := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, tail, _ := strings.Cut(exp, "e")
	trim := func(s string) string {
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	x, _ := strconv.Atoi(tail)
	s := trim(mantissa) + "e" + tail
	if x >= -4 && x < precision {
		s = trim(strconv.FormatFloat(f, 'f', precision-1-x, 64))
	}
	if kind == 'G' {
		s = strings.ToUpper(s)
	}
	return s
}

// pySpecial writes infinities and NaN as Python does.
func pySpecial(s string) string {
	return strings.NewReplacer("+Inf", "inf", "-Inf", "-inf", "NaN", "nan").Replace(s)
}

func groupThousands(s string) string {
	digits, rest := s, ""
	if i := strings.IndexAny(s, ".e%"); i >= 0 {
		digits, rest = s[:i], s[i:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + rest
}
