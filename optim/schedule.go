package optim

import "math"

// Schedule gives the factor by which the initial learning rate is multiplied at a step or epoch, counted from 0. Schedules are functions of the count only, so that
// training can be resumed anywhere:
//
//	schedule := optim.Chain(500, optim.Linear(0.1, 1, 500), optim.Cosine(10_000, 0))
//	for step := range steps {
//		opt.SetLR(lr * schedule(step))
//		…
//	}
type Schedule func(n int) float64

// Apply sets the learning rates of an optimiser to rates[i]·factor for group i; rates are those that the groups began with.
func (s Schedule) Apply(o Optimizer, rates []float64, n int) {
	for i, g := range o.Groups() {
		g.LR = rates[i] * s(n)
	}
}

// Rates gives the present learning rates of an optimiser's groups.
func Rates(o Optimizer) []float64 {
	var out []float64
	for _, g := range o.Groups() {
		out = append(out, g.LR)
	}
	return out
}

// StepLR multiplies by gamma every size steps.
func StepLR(size int, gamma float64) Schedule {
	return func(n int) float64 { return math.Pow(gamma, float64(n/size)) }
}

// MultiStep multiplies by gamma at each milestone.
func MultiStep(milestones []int, gamma float64) Schedule {
	return func(n int) float64 {
		f := 1.0
		for _, m := range milestones {
			if n >= m {
				f *= gamma
			}
		}
		return f
	}
}

// Exponential multiplies by gamma at each step.
func Exponential(gamma float64) Schedule {
	return func(n int) float64 { return math.Pow(gamma, float64(n)) }
}

// Linear goes from start to end in total steps, and stays there: a warm-up where start is small.
func Linear(start, end float64, total int) Schedule {
	return func(n int) float64 { return start + (end-start)*float64(min(n, total))/float64(total) }
}

// Constant is factor for total steps, and then 1.
func Constant(factor float64, total int) Schedule {
	return func(n int) float64 {
		if n < total {
			return factor
		}
		return 1
	}
}

// Polynomial falls from 1 to 0 in total steps by a power.
func Polynomial(total int, power float64) Schedule {
	return func(n int) float64 { return math.Pow(1-float64(min(n, total))/float64(total), power) }
}

// Cosine falls from 1 to floor (a share of the initial rate) in period steps along half a cosine, and rises again after.
func Cosine(period int, floor float64) Schedule {
	return func(n int) float64 {
		return floor + (1-floor)*(1+math.Cos(math.Pi*float64(n)/float64(period)))/2
	}
}

// CosineRestarts is Cosine that starts anew after first steps, then after longer·first, …
func CosineRestarts(first, longer int, floor float64) Schedule {
	return func(n int) float64 {
		period := first
		for n >= period {
			n -= period
			period *= longer
		}
		return Cosine(period, floor)(n)
	}
}

// OneCycle rises from 1/div to 1 in the share warm of total steps, and falls to 1/(div·finalDiv) in the rest, both along cosines: the factor of the largest rate. PyTorch's
// defaults are warm 0.3, div 25 and finalDiv 1e4.
func OneCycle(total int, warm, div, finalDiv float64) Schedule {
	between := func(a, b, at float64) float64 { return b + (a-b)/2*(math.Cos(math.Pi*at)+1) }
	return func(n int) float64 {
		peak := warm*float64(total) - 1
		if x := float64(n); x <= peak {
			return between(1/div, 1, x/peak)
		}
		return between(1, 1/(div*finalDiv), (float64(n)-peak)/(float64(total-1)-peak))
	}
}

// Chain follows a for the first n steps, and then b, counted from there.
func Chain(n int, a, b Schedule) Schedule {
	return func(k int) float64 {
		if k < n {
			return a(k)
		}
		return b(k - n)
	}
}

// Plateau lowers the learning rate where a measure has stopped to fall: torch.optim.lr_scheduler.ReduceLROnPlateau. Zero values mean factor 0.1, patience 10 and a relative
// threshold of 1e-4.
type Plateau struct {
	Factor, Threshold, MinLR float64
	Patience, Cooldown       int

	started   bool
	best      float64
	bad, rest int
}

// Step is told the measure of an epoch.
func (p *Plateau) Step(o Optimizer, measure float64) {
	factor, threshold, patience := or(p.Factor, 0.1), or(p.Threshold, 1e-4), p.Patience
	if patience == 0 {
		patience = 10
	}
	if !p.started || measure < p.best*(1-threshold) {
		p.started, p.best, p.bad = true, measure, 0
	} else {
		p.bad++
	}
	if p.rest > 0 {
		p.rest--
		p.bad = 0
	}
	if p.bad > patience {
		for _, g := range o.Groups() {
			g.LR = max(g.LR*factor, p.MinLR)
		}
		p.rest, p.bad = p.Cooldown, 0
	}
}
