package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// dependencyPlugin is the Maven plugin that writes a class path, pinned so that
// a run today and a run next year resolve alike.
const dependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

var classPathMu sync.Mutex

// ClassPath returns the class path of a pom.xml whose versions are pinned:
// every jar it names and theirs, fetched by Maven into build/m2.
func ClassPath(t testing.TB, pom string) string {
	t.Helper()
	Need(t, "java", "mvn")
	classPathMu.Lock()
	defer classPathMu.Unlock()
	name := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(filepath.Dir(pom), Root()), "/"), "/", "-")
	dir := filepath.Join(Build(t), "classpath", name)
	list := filepath.Join(dir, "classpath")
	Once(t, dir, []string{pom}, func() {
		defer Lock(t, filepath.Join(Build(t), "m2.lock"))()
		Run(t, filepath.Dir(pom), nil, "mvn", "-B", "-q", "-f", pom,
			"-Dmaven.repo.local="+filepath.Join(Build(t), "m2"),
			dependencyPlugin+":build-classpath", "-Dmdep.outputFile="+list)
	})
	content, err := os.ReadFile(list)
	if err != nil {
		t.Fatalf("read class path: %v", err)
	}
	return strings.TrimSpace(string(content))
}

// CompileJava compiles every .java file below source against a class path and
// returns the folder of classes, build/classes/name.
func CompileJava(t testing.TB, name, source, classPath string) string {
	t.Helper()
	Need(t, "java", "javac")
	var files []string
	err := filepath.WalkDir(source, func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".java") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("find Java sources below %s: %d found, %v", source, len(files), err)
	}
	dir := filepath.Join(Build(t), "classes", name)
	Once(t, dir, files, func() {
		args := append([]string{"-nowarn", "-d", dir, "-cp", classPath}, files...)
		Run(t, source, nil, "javac", args...)
	})
	return dir
}
