package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/optim"
	"github.com/gtc-project/gtc/tensor"
)

func params(t *testing.T, v ...float64) []*tensor.Tensor {
	t.Helper()
	w, err := tensor.FromSlice(v, len(v))
	require.NoError(t, err)
	return []*tensor.Tensor{w.RequiresGrad()}
}

// train takes steps towards small sum(w⁴/4 + cos(w)).
func train(t *testing.T, ps []*tensor.Tensor, opt optim.Optimizer, steps int) {
	t.Helper()
	for range steps {
		opt.ZeroGrad()
		for _, w := range ps {
			require.NoError(t, w.Mul(w).Square().Mul(0.25).Add(w.Cos()).Sum().Backward())
		}
		require.NoError(t, opt.Step())
	}
}

// The numbers are PyTorch 1.13's after six steps from (1, -2, 0.5) in float64; of NAdam, later versions', since 1.13 counts
// one momentum twice.
func TestOptimizersStepAsPyTorchs(t *testing.T) {
	type made func(ps []*tensor.Tensor) optim.Optimizer
	for _, c := range []struct {
		name string
		make made
		want []float64
	}{
		{"SGD", func(ps []*tensor.Tensor) optim.Optimizer { return optim.NewSGD(ps, optim.SGD{LR: 0.1}) }, []float64{0.945649816213, -1.00411323863, 0.706437056997}},
		{"SGD with momentum", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewSGD(ps, optim.SGD{LR: 0.05, Momentum: 0.9, Dampening: 0.2, WeightDecay: 0.1})
		}, []float64{0.860333213871, 0.354202012049, 0.726313827336}},
		{"SGD by Nesterov, upwards", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewSGD(ps, optim.SGD{LR: 0.01, Momentum: 0.9, Nesterov: true, Maximize: true})
		}, []float64{1.040056773, -6.54360937246, 0.422668362126}},
		{"Adam", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewAdam(ps, optim.Adam{LR: 0.1, WeightDecay: 0.1})
		}, []float64{0.847895485498, -1.42584319282, 1.01164101202}},
		{"AdamW with AMSGrad", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewAdamW(ps, optim.AdamW{LR: 0.1, WeightDecay: 0.5, AMSGrad: true})
		}, []float64{0.889411960793, -1.00915568314, 0.886033800221}},
		{"RMSprop", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewRMSprop(ps, optim.RMSprop{LR: 0.05, Momentum: 0.5, Centered: true, WeightDecay: 0.1})
		}, []float64{0.83553376219, -0.675670873934, 0.845761889015}},
		{"Adagrad", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewAdagrad(ps, optim.Adagrad{LR: 0.1, LRDecay: 0.1, InitialAccumulator: 0.2})
		}, []float64{0.933688940697, -1.72118833643, 0.725931900841}},
		{"Adadelta", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewAdadelta(ps, optim.Adadelta{WeightDecay: 0.1})
		}, []float64{0.981162445462, -1.98032809323, 0.519845370884}},
		{"Adamax", func(ps []*tensor.Tensor) optim.Optimizer { return optim.NewAdamax(ps, optim.Adamax{LR: 0.1}) }, []float64{0.944795877584, -1.51521751746, 1.00101415383}},
		{"NAdam", func(ps []*tensor.Tensor) optim.Optimizer { return optim.NewNAdam(ps, optim.NAdam{LR: 0.1}) }, []float64{0.927228203648, -1.58457004505, 0.907714045796}},
		{"RAdam", func(ps []*tensor.Tensor) optim.Optimizer { return optim.NewRAdam(ps, optim.RAdam{LR: 0.1}) }, []float64{0.937215148396, -0.3582673781, 0.679178877191}},
		{"Rprop", func(ps []*tensor.Tensor) optim.Optimizer { return optim.NewRprop(ps, optim.Rprop{LR: 0.2}) }, []float64{0.96, -1.0992, 0.88}},
		{"ASGD", func(ps []*tensor.Tensor) optim.Optimizer {
			return optim.NewASGD(ps, optim.ASGD{LR: 0.1, Lambda: 0.01, T0: 2})
		}, []float64{0.942290065906, -1.00105281583, 0.702875561305}},
	} {
		ps := params(t, 1, -2, 0.5)
		train(t, ps, c.make(ps), 6)
		require.InDeltaSlice(t, c.want, ps[0].Array().Floats(), 1e-8, c.name)

		// an optimiser that takes over the state goes on as the first would have
		rest := params(t, 1, -2, 0.5)
		first, second := c.make(rest), c.make(rest)
		train(t, rest, first, 3)
		require.NoError(t, second.LoadState(first.State()), c.name)
		train(t, rest, second, 3)
		require.InDeltaSlice(t, c.want, rest[0].Array().Floats(), 1e-8, c.name)
	}
}

func TestStateThatDoesNotFitIsRefused(t *testing.T) {
	opt := optim.NewAdam(params(t, 1, 2), optim.Adam{})
	require.ErrorContains(t, opt.LoadState(map[string]*tensor.Tensor{"1.exp_avg": tensor.Ones(tensor.F64, 2)}), "1.exp_avg")
	require.ErrorContains(t, opt.LoadState(map[string]*tensor.Tensor{"0.exp_avg": tensor.Ones(tensor.F64, 3)}), "shape [3]")
}

func TestGroupsHaveTheirOwnSettings(t *testing.T) {
	a, b := params(t, 1), params(t, 1)
	opt := optim.WithGroup(optim.NewSGD(a, optim.SGD{LR: 0.1}), optim.Group{Params: b, LR: 0, WeightDecay: 1})
	train(t, append(a, b...), opt, 1)
	require.NotEqual(t, 1.0, a[0].Array().Floats()[0])
	require.Equal(t, 1.0, b[0].Array().Floats()[0])
}

func TestClipping(t *testing.T) {
	ps := params(t, 3, 4)
	require.NoError(t, ps[0].Mul(ps[0]).Sum().Mul(0.5).Backward()) // gradients 3 and 4
	norm, err := optim.ClipGradNorm(ps, 1)
	require.NoError(t, err)
	require.InDelta(t, 5, norm, 1e-9)
	require.InDeltaSlice(t, []float64{0.6, 0.8}, ps[0].Grad().Array().Floats(), 1e-6)
	require.NoError(t, optim.ClipGradValue(ps, 0.7))
	require.InDeltaSlice(t, []float64{0.6, 0.7}, ps[0].Grad().Array().Floats(), 1e-6)
}

// The factors are those of torch.optim.lr_scheduler over eight steps.
func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		name string
		s    optim.Schedule
		want []float64
	}{
		{"StepLR", optim.StepLR(3, 0.5), []float64{1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25}},
		{"MultiStep", optim.MultiStep([]int{2, 5}, 0.1), []float64{1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01}},
		{"Exponential", optim.Exponential(0.9), []float64{1, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.4782969}},
		{"Linear", optim.Linear(0.25, 1, 4), []float64{0.25, 0.4375, 0.625, 0.8125, 1, 1, 1, 1}},
		{"Constant", optim.Constant(0.3, 4), []float64{0.3, 0.3, 0.3, 0.3, 1, 1, 1, 1}},
		{"Polynomial", optim.Polynomial(5, 2), []float64{1, 0.64, 0.36, 0.16, 0.04, 0, 0, 0}},
		{"Cosine", optim.Cosine(6, 0.1), []float64{1, 0.939711431703, 0.775, 0.55, 0.325, 0.160288568297, 0.1, 0.160288568297}},
		{"CosineRestarts", optim.CosineRestarts(2, 2, 0.1), []float64{1, 0.55, 1, 0.868198051534, 0.55, 0.231801948466, 1, 0.96574578963}},
		{"OneCycle", optim.OneCycle(8, 0.3, 25, 1e4), []float64{0.04, 0.819275104892, 0.971941777388, 0.81174565395, 0.555984014123, 0.283060998209, 0.0766415938343, 4e-06}},
	} {
		var got []float64
		for n := range 8 {
			got = append(got, c.s(n))
		}
		require.InDeltaSlice(t, c.want, got, 1e-9, c.name)
	}
}

func TestPlateau(t *testing.T) {
	opt := optim.NewSGD(params(t, 1), optim.SGD{LR: 1})
	p := optim.Plateau{Patience: 2, Factor: 0.5}
	var got []float64
	for _, loss := range []float64{3, 2, 2, 2, 2, 2, 1, 1} {
		p.Step(opt, loss)
		got = append(got, opt.LR())
	}
	require.Equal(t, []float64{1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5}, got)
}
