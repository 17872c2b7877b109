// Package passes specialises and simplifies IR functions.
package passes
