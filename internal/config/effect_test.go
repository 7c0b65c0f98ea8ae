package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

// The documentation says of each setting whether it has an effect. This test
// keeps that true both ways: the field behind a setting with an effect is read
// outside the code that fills it in, and one behind a setting without is not.
func TestASettingHasAnEffectExactlyWhenItIsRead(t *testing.T) {
	read := fieldsRead(t)
	for _, k := range table() {
		if k.set == nil || k.show == nil {
			continue // a family, or nothing is kept of it
		}
		isRead := false
		fields := fieldsOf(t, k)
		for _, field := range fields {
			isRead = isRead || read[field] && namesakes[field] == ""
		}
		switch {
		case k.effect == Applied && !isRead && !usedHere[k.name]:
			t.Errorf("%s is said to have an effect, but nobody reads %v", k.name, fields)
		case k.effect == NoEffect && isRead:
			t.Errorf("%s is said to have no effect, but %v is read", k.name, fields)
		}
	}
}

// namesakes are fields whose name stands behind a dot for another reason.
var namesakes = map[string]string{
	"Storage.Digest":    "the digest of a tree",
	"Ensemble.Observer": "a server line's",
	"Admin.Snapshot":    "a state's snapshot",
	"Admin.Restore":     "a state's restore",
	"Metrics.Host":      "a listener's",
	"Metrics.Port":      "a listener's",
	"Admin.Host":        "a listener's",
	"Admin.Port":        "a listener's",
	"Admin.Enabled":     "a listener's",
}

// usedHere are settings whose effect is on how other settings are read.
var usedHere = map[string]bool{"multiAddress.enabled": true}

// fieldsOf finds out which fields a setting fills, by setting it.
func fieldsOf(t *testing.T, k *key) (fields []string) {
	t.Helper()
	for _, raw := range []string{"true", "false", "yes", "no", "12345", "0.5", "observer", "gz", "bolt", "wchc"} {
		c := Default()
		if err := k.set(c, raw); err != nil && k.show(c) == k.show(Default()) {
			continue
		}
		before, after := reflect.ValueOf(*Default()), reflect.ValueOf(*c)
		for i := range after.NumField() {
			if after.Field(i).Kind() != reflect.Struct {
				continue
			}
			for j := range after.Field(i).NumField() {
				if !reflect.DeepEqual(before.Field(i).Field(j).Interface(), after.Field(i).Field(j).Interface()) {
					fields = append(fields, after.Type().Field(i).Name+"."+after.Field(i).Type().Field(j).Name)
				}
			}
		}
	}
	if len(fields) == 0 {
		t.Errorf("%s: no value changes a field", k.name)
	}
	return fields
}

// fieldsRead returns Concern.Field for every file outside the filling code that
// names both; names alone, because types cost a build. A method of the concern
// counts as reading what it reads.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	concerns := reflect.TypeOf(Config{})
	for _, dir := range []string{"internal", "cmd", "zktest"} {
		err := filepath.WalkDir(filepath.Join(toolchain.Root(), dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil // also for a folder that is not there yet
			}
			names, err := selectors(path)
			if err != nil {
				return err
			}
			own := filepath.Base(filepath.Dir(path)) == "config"
			for i := range concerns.NumField() {
				concern := concerns.Field(i)
				if concern.Type.Kind() != reflect.Struct || !own && !names[concern.Name] {
					continue
				}
				for j := range concern.Type.NumField() {
					field := concern.Type.Field(j).Name
					if names[field] && (!own || readHere[concern.Name+"."+field] == filepath.Base(path)) {
						read[concern.Name+"."+field] = true
					}
				}
				if own {
					continue
				}
				for method, field := range map[string]string{"Prometheus": "Provider", "Allows": "Allowed", "OwnDataDir": "DataDir", "OwnLogDir": "LogDir"} {
					if _, has := concern.Type.FieldByName(field); has && names[method] {
						read[concern.Name+"."+field] = true
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return read
}

// readHere names the files of this package that act on a setting rather than
// fill it in.
var readHere = map[string]string{
	"Storage.AutoCreate":         "foreign.go",
	"Ensemble.StandaloneEnabled": "ensemble.go",
	"Ensemble.DynamicFile":       "members.go",
	"Throttle.LocalWeight":       "throttle.go",
}

// selectors returns every name that stands behind a dot in a file.
func selectors(path string) (map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			names[s.Sel.Name] = true
		}
		return true
	})
	return names, nil
}
