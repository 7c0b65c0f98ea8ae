package clients

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zooraft/zooraft/test/zkcli"
)

// readScripts reads all scripts of a folder, by file name. The names of their
// exchanges begin with it, and so are unique in a run.
func readScripts(dir string) (map[string][]zkcli.Exchange, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.script"))
	if err != nil {
		return nil, err
	}
	scripts := map[string][]zkcli.Exchange{}
	for _, path := range paths {
		script, err := zkcli.ReadScript(path)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(filepath.Base(path), ".script")
		for i := range script {
			script[i].Name = base + ":" + script[i].Name
		}
		scripts[base] = script
	}
	if len(scripts) == 0 {
		return nil, fmt.Errorf("no scripts in %s", dir)
	}
	return scripts, nil
}
