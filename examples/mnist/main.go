// Command mnist trains LeNet eagerly on the MNIST digits of testdata/mnist, reports the accuracy on the test digits, and saves the weights, a fixed
// batch of test images, and their labels for the tools that follow. With -compare it times that model against the package traced from it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/gtc-project/gtc/data"
	"github.com/gtc-project/gtc/examples/lenet"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/nn"
	"github.com/gtc-project/gtc/optim"
	"github.com/gtc-project/gtc/runtime"
	"github.com/gtc-project/gtc/tensor"
	"github.com/gtc-project/gtc/trace"
)

func main() {
	epochs := flag.Int("epochs", 4, "passes over the training digits")
	batch := flag.Int("batch", 64, "images per step")
	lr := flag.Float64("lr", 0.04, "learning rate")
	dir := flag.String("data", "testdata/mnist", "folder with the MNIST npz files")
	out := flag.String("o", "", "folder to write lenet.safetensors and test.npz to")
	pkg := flag.String("compare", "", "instead of training: compare the model in the folder of -o with this package, traced from it")
	flag.Parse()
	if err := run(*epochs, *batch, *lr, *dir, *out, *pkg); err != nil {
		fmt.Fprintln(os.Stderr, "mnist:", err)
		os.Exit(1)
	}
}

func run(epochs, batch int, lr float64, dir, out, pkg string) error {
	test, err := data.MNIST(filepath.Join(dir, "mnist-test-2k.npz"))
	if err != nil {
		return err
	}
	if pkg != "" {
		return compare(pkg, filepath.Join(out, "lenet.safetensors"), test)
	}
	train, err := data.MNIST(filepath.Join(dir, "mnist-train-10k.npz"))
	if err != nil {
		return err
	}
	if reason := runtime.FallbackReason(); reason != nil {
		fmt.Fprintln(os.Stderr, "using the reference evaluator:", reason)
	}
	tensor.ManualSeed(1)
	model := lenet.New()
	opt := optim.NewSGD(nn.Parameters(model), optim.SGD{LR: lr, Momentum: 0.9})
	loader := data.Loader[data.Batch]{Len: train.Len(), BatchSize: batch, Shuffle: true, Seed: 1, DropLast: true, Load: train.Load}
	fmt.Printf("LeNet with %d parameters, %d training digits, %s\n", nn.NumParameters(model), train.Len(), runtime.Default())
	start := time.Now()
	for epoch := range epochs {
		opt.SetLR(lr / float64(1+epoch))
		loss, err := trainEpoch(model, opt, loader, epoch, epochs)
		if err != nil {
			return err
		}
		acc, err := accuracy(model, test)
		if err != nil {
			return err
		}
		fmt.Printf("epoch %d: loss %.4f, test accuracy %.2f %% (%.1f s)\n", epoch+1, loss, 100*acc, time.Since(start).Seconds())
	}
	if out == "" {
		return nil
	}
	return save(model, test, out)
}

func trainEpoch(model *lenet.LeNet, opt optim.Optimizer, loader data.Loader[data.Batch], epoch, epochs int) (float64, error) {
	nn.Train(model)
	bar := progressbar.NewOptions(loader.Batches(),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(fmt.Sprintf("epoch %d/%d", epoch+1, epochs)),
		progressbar.OptionSetVisibility(isTerminal(os.Stderr)), progressbar.OptionClearOnFinish())
	var total float64
	for b, err := range loader.Epoch(context.Background(), epoch) {
		if err != nil {
			return 0, err
		}
		x, y := tensor.FromArray(b.Field("images")), tensor.FromArray(b.Field("labels"))
		opt.ZeroGrad()
		loss := nn.CrossEntropyLoss(model.Forward(x), y)
		if err := loss.Backward(); err != nil {
			return 0, err
		}
		if err := opt.Step(); err != nil {
			return 0, err
		}
		v, err := loss.Item()
		if err != nil {
			return 0, err
		}
		total += v
		_ = bar.Add(1) // a bar that cannot be drawn is no reason to stop
	}
	_ = bar.Finish()
	return total / float64(loader.Batches()), nil
}

func accuracy(model *lenet.LeNet, test *data.Dataset) (float64, error) {
	nn.Eval(model)
	x := tensor.NoGrad(tensor.FromArray(test.Field("images")))
	y := tensor.FromArray(test.Field("labels"))
	return share(model.Forward(x), y)
}

// share is the share of rows whose largest score is at the label.
func share(scores, labels *tensor.Tensor) (float64, error) {
	return scores.ArgMax(1).Eq(labels).To(tensor.F32).Mean().Item()
}

// compare runs the trained model eagerly and as the package that was traced from it, both in batches of the size that it was traced for, and prints
// accuracies on all test digits and median times for a batch, measured by turns.
func compare(pkg, weights string, test *data.Dataset) error {
	model := lenet.New()
	if err := nn.Load(model, weights, true); err != nil {
		return err
	}
	nn.Eval(model)
	program, err := trace.Open(pkg)
	if err != nil {
		return err
	}
	batch := program.Func.Body.Params[0].Type.Shape()[0]
	images, labels := tensor.NoGrad(tensor.FromArray(test.Field("images"))), tensor.FromArray(test.Field("labels"))
	eager := func(x *tensor.Tensor) (*tensor.Tensor, error) { y := model.Forward(x); return y, y.Err() }
	compiled := func(x *tensor.Tensor) (*tensor.Tensor, error) {
		out, err := program.Call(context.Background(), x)
		if err != nil {
			return nil, err
		}
		return out[0].(*tensor.Tensor), nil
	}
	var times [2][]float64
	var right [2]float64
	rounds := max(15, test.Len()/batch)
	for round := range rounds {
		at := round * batch % (test.Len() - batch + 1)
		x, y := images.Narrow(0, at, batch), labels.Narrow(0, at, batch)
		for i, forward := range []func(*tensor.Tensor) (*tensor.Tensor, error){eager, compiled} {
			start := time.Now()
			scores, err := forward(x)
			if err != nil {
				return err
			}
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/1e6)
			acc, err := share(scores, y)
			if err != nil {
				return err
			}
			right[i] += acc / float64(rounds)
		}
	}
	for i, how := range []string{"eager", "compiled"} {
		slices.Sort(times[i])
		fmt.Printf("%-8s test accuracy %.2f %%, %.3f ms for a batch of %d\n", how, 100*right[i], times[i][rounds/2], batch)
	}
	fmt.Printf("compiled is %.2f times as fast as eager\n", times[0][rounds/2]/times[1][rounds/2])
	return nil
}

func save(model *lenet.LeNet, test *data.Dataset, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := nn.Save(model, filepath.Join(dir, "lenet.safetensors")); err != nil {
		return err
	}
	if err := npz.Write(filepath.Join(dir, "labels.npz"), []npz.Named{{Name: "labels", Array: test.Field("labels")}}); err != nil {
		return err
	}
	return npz.Write(filepath.Join(dir, "test.npz"), []npz.Named{{Name: "x", Array: test.Field("images")}})
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
