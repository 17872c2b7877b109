package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gtc-project/gtc/internal/driver"
	"github.com/gtc-project/gtc/internal/npz"
	"github.com/gtc-project/gtc/ir"
)

// Model computes; *driver.Runner is one.
type Model interface {
	Inputs() []driver.Param
	Outputs() []ir.Type
	Run(ctx context.Context, arrays driver.Arrays) (out []npz.Named, done func(), err error)
}

// Options configure a Server. The zero value means the defaults.
type Options struct {
	Name       string        // of the model
	Version    string        // of the server
	MaxRequest int64         // bytes of a request's body; 0 means DefaultMaxRequest
	Concurrent int           // calls that compute at the same time, the others wait; 0 means one per CPU
	Grace      time.Duration // how long calls may go on at the end; 0 means DefaultGrace
	Log        io.Writer     // of failures inside; nil drops them
}

// The defaults.
const (
	DefaultMaxRequest = 64 << 20
	DefaultGrace      = 10 * time.Second
)

// version is the only version of the model.
const version = "1"

// Server is an http.Handler for one model. It is safe for concurrent use.
type Server struct {
	model   Model
	o       Options
	mux     *http.ServeMux
	slots   chan struct{}
	ready   atomic.Bool
	logger  *log.Logger
	inputs  []typeJSON
	outputs []typeJSON
}

// New makes a server, which is ready at once.
func New(m Model, o Options) *Server {
	if o.MaxRequest == 0 {
		o.MaxRequest = DefaultMaxRequest
	}
	if o.Concurrent == 0 {
		o.Concurrent = runtime.GOMAXPROCS(0)
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	s := &Server{model: m, o: o, mux: http.NewServeMux(), slots: make(chan struct{}, o.Concurrent), logger: log.New(o.Log, "gtc: ", log.LstdFlags)}
	s.inputs, s.outputs = []typeJSON{}, []typeJSON{}
	for _, p := range m.Inputs() {
		s.inputs = append(s.inputs, describe(p.Name, p.Type))
	}
	for i, t := range m.Outputs() {
		if t.Kind == ir.KTuple || t.Kind == ir.KList || t.Kind == ir.KDict {
			s.outputs = []typeJSON{} // how many arrays there will be is known when it has run
			break
		}
		s.outputs = append(s.outputs, describe(fmt.Sprintf("out.%d", i), t))
	}
	s.routes()
	s.ready.Store(true)
	return s
}

func (s *Server) routes() {
	s.handle("GET", "/v2", s.metadata)
	s.handle("GET", "/v2/health/live", func(http.ResponseWriter, *http.Request) (any, error) { return map[string]bool{"live": true}, nil })
	s.handle("GET", "/v2/health/ready", s.serverReady)
	for _, model := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		s.handle("GET", model, s.modelMetadata)
		s.handle("GET", model+"/ready", s.modelReady)
		s.handle("POST", model+"/infer", s.infer)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, status{http.StatusNotFound, fmt.Errorf("there is no %s; see /v2", r.URL.Path)})
	})
}

// handle answers a path with what f gives, as JSON, and other methods with 405.
func (s *Server) handle(method, path string, f func(http.ResponseWriter, *http.Request) (any, error)) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != method && !(method == "GET" && r.Method == "HEAD") {
			w.Header().Set("Allow", method)
			s.fail(w, status{http.StatusMethodNotAllowed, fmt.Errorf("%s takes %s, not %s", r.URL.Path, method, r.Method)})
			return
		}
		v, err := f(w, r)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.write(w, http.StatusOK, v)
	})
}

// status is an error with the HTTP status that it is answered with.
type status struct {
	code int
	error
}

// fail answers with an error. What is no status comes from the model: the request's data do not suit it.
func (s *Server) fail(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	var st status
	if errors.As(err, &st) {
		code = st.code
	}
	if code >= 500 {
		s.logger.Print(err)
	}
	s.write(w, code, map[string]string{"error": err.Error()})
}

func (s *Server) write(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.logger.Print(err)
		code, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // a client that is gone needs no answer
}

// ServeHTTP answers one request. A panic, which is a bug, is answered with 500.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(w, status{http.StatusInternalServerError, fmt.Errorf("internal error: %v", p)})
		}
	}()
	s.mux.ServeHTTP(w, r)
}

func (s *Server) metadata(http.ResponseWriter, *http.Request) (any, error) {
	return map[string]any{"name": "gtc", "version": s.o.Version, "extensions": []string{}}, nil
}

func (s *Server) serverReady(http.ResponseWriter, *http.Request) (any, error) {
	if !s.ready.Load() {
		return nil, status{http.StatusServiceUnavailable, errors.New("the server is shutting down")}
	}
	return map[string]bool{"ready": true}, nil
}

// named checks that a request is about the model.
func (s *Server) named(r *http.Request) error {
	if name := r.PathValue("model"); name != s.o.Name {
		return status{http.StatusNotFound, fmt.Errorf("there is no model %q; this server has %q", name, s.o.Name)}
	}
	if v := r.PathValue("version"); v != "" && v != version {
		return status{http.StatusNotFound, fmt.Errorf("the model %q has no version %q; its version is %s", s.o.Name, v, version)}
	}
	return nil
}

func (s *Server) modelMetadata(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := s.named(r); err != nil {
		return nil, err
	}
	return map[string]any{"name": s.o.Name, "versions": []string{version}, "platform": "gtc", "inputs": s.inputs, "outputs": s.outputs}, nil
}

func (s *Server) modelReady(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := s.named(r); err != nil {
		return nil, err
	}
	if _, err := s.serverReady(w, r); err != nil {
		return nil, err
	}
	return map[string]any{"name": s.o.Name, "ready": true}, nil
}

// requestJSON is the body of an inference request.
type requestJSON struct {
	ID      string       `json:"id"`
	Inputs  []tensorJSON `json:"inputs"`
	Outputs []struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
	} `json:"outputs"`
	Parameters map[string]any `json:"parameters"`
}

type responseJSON struct {
	ModelName    string       `json:"model_name"`
	ModelVersion string       `json:"model_version"`
	ID           string       `json:"id,omitempty"`
	Outputs      []tensorJSON `json:"outputs"`
}

func (s *Server) infer(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := s.named(r); err != nil {
		return nil, err
	}
	req, err := s.read(w, r)
	if err != nil {
		return nil, err
	}
	arrays := driver.ArrayMap{}
	for i := range req.Inputs {
		t := &req.Inputs[i]
		if arrays[t.Name] != nil {
			return nil, fmt.Errorf("input %q is there twice", t.Name)
		}
		if arrays[t.Name], err = t.decode(); err != nil {
			return nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return nil, status{http.StatusServiceUnavailable, r.Context().Err()}
	}
	out, done, err := s.model.Run(r.Context(), arrays)
	if err != nil {
		if r.Context().Err() != nil {
			err = status{http.StatusServiceUnavailable, err}
		}
		return nil, err
	}
	defer done()
	resp := responseJSON{ModelName: s.o.Name, ModelVersion: version, ID: req.ID, Outputs: []tensorJSON{}}
	for _, o := range out {
		if len(req.Outputs) == 0 {
			resp.Outputs = append(resp.Outputs, encode(o.Name, o.Array))
		}
	}
	for _, want := range req.Outputs {
		i := slices.IndexFunc(out, func(o npz.Named) bool { return o.Name == want.Name })
		if i < 0 {
			return nil, fmt.Errorf("there is no output %q; there are out.0 to out.%d", want.Name, len(out)-1)
		}
		resp.Outputs = append(resp.Outputs, encode(out[i].Name, out[i].Array))
	}
	return resp, nil
}

// read reads a request's body.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (*requestJSON, error) {
	if r.Header.Get("Inference-Header-Content-Length") != "" {
		return nil, status{http.StatusUnsupportedMediaType, errors.New("binary tensors are not supported; send the data as JSON")}
	}
	var req requestJSON
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.o.MaxRequest))
	err := dec.Decode(&req)
	if err == nil {
		if _, err = dec.Token(); err == io.EOF {
			return &req, nil
		}
		if err == nil {
			err = errors.New("something follows it")
		}
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, status{http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", large.Limit)}
	}
	return nil, fmt.Errorf("the body is no inference request: %w", err)
}

// Serve answers on a listener until ctx ends; then it says that it is not ready, takes no new calls, and lets those go on that are there.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, ErrorLog: s.logger}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.ready.Store(false)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Grace)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		_ = srv.Close()
		return fmt.Errorf("calls were still running after %s", s.o.Grace)
	}
	return nil
}
