package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/internal/serve"
	"github.com/gtc-project/gtc/ir"
)

const script = `import torch
from torch import Tensor


def forward(x: Tensor, k: int = 2):
    return torch.log(x) * k, x.sum() > 1, k
`

// start serves the script above as "net".
func start(t *testing.T, o serve.Options) *httptest.Server {
	path := filepath.Join(t.TempDir(), "net.py")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
	m, err := driver.NewRunner(t.Context(), path, &driver.Options{Input: []string{"x=f32[N]"}})
	require.NoError(t, err)
	o.Name = "net"
	srv := httptest.NewServer(serve.New(m, o))
	t.Cleanup(srv.Close)
	return srv
}

func call(t *testing.T, method, url, body string) (int, string) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(data))
}

func TestHealthAndMetadata(t *testing.T) {
	url := start(t, serve.Options{Version: "1.0"}).URL
	for path, want := range map[string]string{
		"/v2":                             `{"extensions":[],"name":"gtc","version":"1.0"}`,
		"/v2/health/live":                 `{"live":true}`,
		"/v2/health/ready":                `{"ready":true}`,
		"/v2/models/net/ready":            `{"name":"net","ready":true}`,
		"/v2/models/net/versions/1/ready": `{"name":"net","ready":true}`,
		"/v2/models/net": `{"inputs":[{"name":"x","datatype":"FP32","shape":[-1]},{"name":"k","datatype":"INT64","shape":[]}],"name":"net",` +
			`"outputs":[{"name":"out.0","datatype":"FP32","shape":[-1]},{"name":"out.1","datatype":"BOOL","shape":[]},{"name":"out.2","datatype":"INT64","shape":[]}],` +
			`"platform":"gtc","versions":["1"]}`,
	} {
		code, got := call(t, "GET", url+path, "")
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, want, got, path)
	}
}

func TestInfer(t *testing.T) {
	url := start(t, serve.Options{}).URL + "/v2/models/net/infer"
	code, got := call(t, "POST", url, `{"id": "7", "inputs": [
		{"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1, 0], [-1, 2.5]]},
		{"name": "k", "datatype": "INT64", "shape": [], "data": 3}]}`)
	require.Equal(t, http.StatusOK, code, got)
	require.Equal(t, `{"model_name":"net","model_version":"1","id":"7","outputs":[`+
		`{"name":"out.0","shape":[2,2],"datatype":"FP32","data":[0,"-Infinity","NaN",2.7488723]},`+
		`{"name":"out.1","shape":[],"datatype":"BOOL","data":[true]},{"name":"out.2","shape":[],"datatype":"INT64","data":[3]}]}`, got)
	code, got = call(t, "POST", url, `{"inputs": [{"name": "x", "datatype": "FP64", "shape": [0], "data": []}], "outputs": [{"name": "out.2"}]}`)
	require.Equal(t, http.StatusOK, code, got)
	require.Contains(t, got, `"outputs":[{"name":"out.2","shape":[],"datatype":"INT64","data":[2]}]`)
}

// TestErrors: each has its status, and says what is wrong.
func TestErrors(t *testing.T) {
	url := start(t, serve.Options{MaxRequest: 2000}).URL
	input := func(datatype, shape, data string) string {
		return fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": %q, "shape": %s, "data": %s}]}`, datatype, shape, data)
	}
	for _, c := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/v1", "", 404, "there is no /v1"},
		{"GET", "/v2/models/other", "", 404, `there is no model \"other\"`},
		{"POST", "/v2/models/net/versions/3/infer", "{}", 404, `no version \"3\"`},
		{"GET", "/v2/models/net/infer", "", 405, "takes POST, not GET"},
		{"POST", "/v2/models/net/infer", "{", 400, "no inference request: unexpected EOF"},
		{"POST", "/v2/models/net/infer", "{} {}", 400, "something follows it"},
		{"POST", "/v2/models/net/infer", "{}", 400, `missing argument \"x\"; expected: x: Tensor, k: int = 2`},
		{"POST", "/v2/models/net/infer", input("FP31", "[1]", "[1]"), 400, `the datatype \"FP31\" is not known`},
		{"POST", "/v2/models/net/infer", input("FP32", "[2]", "[1]"), 400, "the data have 1 elements, but the shape [2] asks for 2"},
		{"POST", "/v2/models/net/infer", input("FP32", "[1]", "[1, 2]"), 400, "more than the 1 elements"},
		{"POST", "/v2/models/net/infer", input("FP32", "[-1]", "[1]"), 400, "negative size"},
		{"POST", "/v2/models/net/infer", input("FP32", "[100000, 100000]", "[1]"), 400, "more than the data holds"},
		{"POST", "/v2/models/net/infer", input("INT8", "[1]", "[200]"), 400, "200 is no INT8"},
		{"POST", "/v2/models/net/infer", input("FP32", "[1]", "[null]"), 400, "null is no FP32"},
		{"POST", "/v2/models/net/infer", input("FP32", "[1]", `[{"a": 1}]`), 400, "the data hold an object"},
		{"POST", "/v2/models/net/infer", `{"inputs": [], "id": "` + strings.Repeat("x", 3000) + `"}`, 413, "more than 2000 bytes"},
	} {
		code, got := call(t, c.method, url+c.path, c.body)
		require.Equal(t, c.code, code, got)
		require.Contains(t, got, c.want)
		var e struct{ Error string }
		require.NoError(t, json.Unmarshal([]byte(got), &e))
		require.NotEmpty(t, e.Error)
	}
}

// TestConcurrentCalls: of different sizes, each with its own result.
func TestConcurrentCalls(t *testing.T) {
	url := start(t, serve.Options{Concurrent: 4}).URL + "/v2/models/net/infer"
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 5 {
				body := fmt.Sprintf(`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [%d], "data": [1%s]}, {"name": "k", "datatype": "INT64", "shape": [], "data": [%d]}]}`,
					i+1, strings.Repeat(", 1", i), i)
				code, got := call(t, "POST", url, body)
				want := fmt.Sprintf(`"shape":[%d],"datatype":"FP32","data":[0%s]}`, i+1, strings.Repeat(",0", i))
				if code != http.StatusOK || !strings.Contains(got, want) || !strings.Contains(got, fmt.Sprintf(`"data":[%d]}]}`, i)) {
					t.Errorf("call %d: status %d, %s", i, code, got)
				}
			}
		})
	}
	wg.Wait()
}

// slow is a model that computes until it is told to stop.
type slow struct{ started, stop chan struct{} }

func (slow) Inputs() []driver.Param { return nil }
func (slow) Outputs() []ir.Type     { return nil }
func (m slow) Run(context.Context, driver.Arrays) ([]npz.Named, func(), error) {
	close(m.started)
	<-m.stop
	return nil, func() {}, nil
}

// TestShutdown: a running call ends, new ones are refused.
func TestShutdown(t *testing.T) {
	m := slow{make(chan struct{}), make(chan struct{})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan int, 1)
	go func() { ended <- serve.New(m, serve.Options{Name: "slow"}).Serve(ctx, l) }()
	go func() {
		resp, err := http.Post(url+"/v2/models/slow/infer", "application/json", strings.NewReader("{}"))
		if err == nil {
			answered <- resp.StatusCode
			resp.Body.Close()
		}
		close(answered)
	}()
	<-m.started
	cancel()
	refused := func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err != nil
	}
	require.Eventually(t, refused, 5*time.Second, time.Millisecond)
	close(m.stop)
	require.NoError(t, <-ended)
	require.Equal(t, http.StatusOK, <-answered)
}
