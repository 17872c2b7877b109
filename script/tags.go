package script

import (
	"github.com/gtc-project/gtc/ir"
)

// Lists whose elements share memory with tensors that are written later, where the length is not known while lowering: a second
// list of numbers, kept in step, says for each element which reference it was copied from. Before the list is used, the elements
// whose memory was written since are copied again. The first pass finds out which lists need this.

const noTag = -1

// tagFor gives the number of what v refers to, noTag where elements copied from it cannot be told apart: memory made anew in
// every iteration of a loop around which the list lives on.
func (l *lowering) tagFor(c *cell, v value) int {
	r, ok := v.(*refV)
	if !ok || !taggable(r, c) {
		return noTag
	}
	key := r.cell.site
	for _, s := range r.path {
		if s.read == nil {
			return noTag
		}
		key += "/" + s.name
		for _, a := range s.args {
			d, isConst := a.Const()
			if !isConst {
				return noTag
			}
			key += "," + ir.FormatDatum(d)
		}
	}
	id, ok := l.tagIDs[key]
	if !ok {
		id = len(l.tagIDs)
		l.tagIDs[key] = id
	}
	return id
}

func taggable(r *refV, c *cell) bool {
	if len(r.cell.scopes) > len(c.scopes) {
		return false
	}
	for i, s := range r.cell.scopes {
		if c.scopes[i] != s {
			return false
		}
	}
	return true
}

func (l *lowering) tagAppend(c *cell, v value) {
	if t := c.tags; t != nil {
		l.appendTo(&refV{t: t.t, cell: t.cell}, l.scalar(int64(l.tagFor(c, v))), l.pos)
	}
}

// refresh brings the elements of a list up to date with what they share memory with, where that is tracked; it reports whether
// it did.
func (l *lowering) refresh(c *cell) bool {
	var stale []hold
	for _, h := range l.state(c).holds {
		if !h.inside(c) && l.holdStamp(h) != h.stamp {
			stale = append(stale, h)
		}
	}
	if len(stale) == 0 {
		return true
	}
	if stale = l.refreshPlaces(c, stale); len(stale) == 0 {
		return true
	}
	if unwrapped(c.t).Kind != ir.KList {
		return false
	}
	for _, h := range stale {
		if h.loose || l.tagFor(c, h.ref) == noTag {
			return false
		}
	}
	if !l.mirror.final {
		l.mirror.used["tags "+c.site] = true
		return true
	}
	tags := c.tags
	if tags == nil || l.state(c).untagged {
		return false
	}
	done := map[int]bool{}
	for _, h := range stale {
		if id := l.tagFor(c, h.ref); !done[id] {
			done[id] = true
			l.refreshFrom(c, id, h.ref)
		}
	}
	s := l.copyState(c)
	for i, h := range s.holds {
		s.holds[i].stamp = l.holdStamp(h)
	}
	s.stamp = l.nextStamp()
	l.cells[c] = s
	return true
}

// refreshFrom copies the reference again into the elements with its tag.
func (l *lowering) refreshFrom(c *cell, id int, r *refV) {
	now := l.read(r)
	tags := l.read(c.tags)
	s := l.copyState(c)
	list := l.asIR(c, s.content)
	l.try(func() {
		b := l.b
		s.content = b.For(b.Op("list_len", list), []*ir.Value{list}, []ir.Type{s.t}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
			is := b.Op("py_eq", b.Op("list_get", tags, i), b.Int(id))
			return b.If(is, func() []*ir.Value { return []*ir.Value{b.Op("list_set", carried[0], i, now)} }, func() []*ir.Value { return carried })
		})[0]
	})
	l.cells[c] = s
}

// refreshPlaces copies what a list or dict holds again where it is known under which index or key, and gives what is left.
func (l *lowering) refreshPlaces(c *cell, stale []hold) (rest []hold) {
	set := map[ir.Kind]string{ir.KList: "list_set", ir.KDict: "dict_set"}[unwrapped(c.t).Kind]
	for _, h := range stale {
		if !h.keyed || h.elems || set == "" {
			rest = append(rest, h)
			continue
		}
		now := l.read(h.ref)
		s := l.copyState(c)
		s.content = l.op(set, l.asIR(c, s.content), h.place(l), now)
		s.stamp = l.nextStamp()
		for i := range s.holds {
			if s.holds[i].ref == h.ref && s.holds[i].keyed == h.keyed && s.holds[i].at == h.at && ir.DatumEqual(s.holds[i].key, h.key) {
				s.holds[i].stamp = l.holdStamp(h)
			}
		}
		l.cells[c] = s
	}
	return rest
}
