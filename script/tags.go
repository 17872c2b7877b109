package script

// refresh brings the elements of a container up to date with what they share memory with, where that is tracked; it reports
// whether it did.
func (l *lowering) refresh(c *cell) bool { return false }
