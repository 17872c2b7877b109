package script

// kind is the class of a token.
type kind uint8

const (
	tEOF kind = iota
	tNewline
	tIndent
	tDedent
	tName
	tKeyword
	tInt
	tFloat
	tString
	tFString
	tOp
)

func (k kind) String() string {
	return [...]string{"end of file", "end of line", "indentation", "dedent", "name", "keyword", "integer", "number", "string",
		"f-string", "operator"}[k]
}

// token is one lexical element; text is the name, keyword or operator itself, or a string's decoded value (for an
// f-string, its raw inside).
type token struct {
	kind kind
	text string
	pos  Pos
	raw  bool // an f-string with prefix r
}

var keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true, "await": true,
	"break": true, "class": true, "continue": true, "def": true, "del": true, "elif": true, "else": true, "except": true,
	"finally": true, "for": true, "from": true, "global": true, "if": true, "import": true, "in": true, "is": true,
	"lambda": true, "nonlocal": true, "not": true, "or": true, "pass": true, "raise": true, "return": true, "try": true,
	"while": true, "with": true, "yield": true,
}

// operators lists every operator and delimiter, longest first.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...",
	"**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":=",
	"+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
}
