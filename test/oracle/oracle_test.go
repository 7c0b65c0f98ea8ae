package oracle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zooraft/zooraft/test/toolchain"
)

var (
	flagOurs   = flag.String("ours", "zooraft", "what is compared with the real server: zooraft, or apache for the real one with itself")
	flagScript = flag.String("script", "", "run only this file of scripts")
	flagPrint  = flag.Bool("print", false, "print the real server's transcript of each script")
)

func TestMain(m *testing.M) {
	flag.BoolVar(&RaceBuilt, "racebuilt", false, "compare a zooraft built with the race detector")
	flag.Parse()
	os.Exit(toolchain.Main(m))
}

// Every script of the corpus gets the same answers from both servers.
func TestCorpusGetsTheSameAnswers(t *testing.T) {
	var used Use
	t.Run("with", func(t *testing.T) {
		for _, config := range Configs(corpus(t)) {
			t.Run(name(config), func(t *testing.T) {
				t.Parallel()
				pair := NewPair(t, config, *flagOurs)
				defer pair.Close()
				for _, s := range corpus(t) {
					if s.Config == config {
						t.Run(s.Name, func(t *testing.T) { runOne(t, pair, s, &used) })
					}
				}
			})
		}
	})
	PrintUse(os.Stdout, Rows, &used)
}

func name(config string) string {
	if config == "" {
		return "default"
	}
	return config
}

func runOne(t *testing.T, pair *Pair, s Script, used *Use) {
	if *flagPrint {
		tr, err := pair.Real.Run(s)
		if err != nil {
			t.Fatal(err)
		}
		printTranscript(s, tr)
		if _, err := pair.Ours.Run(Script{Name: "even", Steps: nil}); err != nil {
			t.Fatal(err)
		}
		pair.Again()
	}
	d, err := pair.RunTwice(s, used)
	if d != nil {
		t.Errorf("%v", d)
	}
	if err != nil {
		t.Errorf("%v", err)
	}
	if d != nil || err != nil {
		pair.Again()
	}
}

func printTranscript(s Script, tr Transcript) {
	fmt.Printf("script %s\n", s.Name)
	step := -1
	for _, e := range Normalise(tr) {
		for ; step < e.Step; step++ {
			fmt.Printf("%3d %v\n", step+1, clip(stepAt(s, step+1).String()))
		}
		fmt.Printf("      %s\n", clip(e.String()))
	}
}

// corpus reads all scripts, or those of -script.
func corpus(t *testing.T) []Script {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("corpus", "*.txt"))
	if *flagScript != "" {
		files = []string{*flagScript}
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	return readScripts(t, files)
}

func readScripts(t *testing.T, files []string) (all []Script) {
	t.Helper()
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts, err := Parse(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, scripts...)
	}
	return all
}
