package config

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Options is what the command line and the environment hold.
type Options struct {
	// File is the path of a zoo.cfg, or empty.
	File string
	// Args are Apache's positional arguments, two to four of them: clientPort
	// dataDir [tickTime [maxClientCnxns]]. Not together with File.
	Args []string
	// Defines are the -D arguments in their order, without the -D.
	Defines []string
	// Environ is the environment as os.Environ returns it.
	Environ []string
	// AllowUnprotected accepts settings that ask for protection which this
	// version does not have.
	AllowUnprotected bool
	// Listen, DataDir and PortFile are flags; they win over everything else.
	// Listen is host:port, :port or port.
	Listen, DataDir, PortFile string
	// LookupHost resolves clientPortAddress; nil means net.LookupHost.
	LookupHost func(host string) ([]string, error)
}

// setting is one value as it was written somewhere.
type setting struct {
	name, value string
	file        string
	line        int
	origin      string
}

func (s setting) source() string {
	if s.file != "" {
		return fmt.Sprintf("%s:%d", s.file, s.line)
	}
	return s.origin
}

// loader carries a Load from step to step.
type loader struct {
	options Options
	config  *Config
	report  *Report
	// parsed holds the settings of Apache's parser, by name; properties those
	// that Java would hold as system properties, by property.
	parsed, properties map[string]setting
	// sources holds the setting behind each effective value, by name.
	sources  map[string]setting
	warnings []warning
	problems []error
}

// warning is a Warning that still knows its place.
type warning struct {
	at   setting
	text string
}

// Load reads everything the options name and returns the effective
// configuration. On an error nothing has been touched; the error is one or
// several joined *Error. The report is returned with an error too, as far as it
// got.
func Load(o Options) (*Config, *Report, error) {
	if o.LookupHost == nil {
		o.LookupHost = net.LookupHost
	}
	l := newLoader(o)
	l.readDefines()
	if err := l.readFileOrArgs(); err != nil {
		return nil, l.report, err
	}
	l.apply()
	l.applyFlags()
	l.readMyID()
	l.readMembers()
	l.deriveAndValidate()
	l.refuse()
	l.fillReport()
	sort.SliceStable(l.problems, func(i, j int) bool { return lineOf(l.problems[i]) < lineOf(l.problems[j]) })
	if err := errors.Join(l.problems...); err != nil {
		return nil, l.report, err
	}
	return l.config, l.report, nil
}

func newLoader(o Options) *loader {
	l := &loader{
		options: o, config: Default(), report: &Report{},
		parsed: map[string]setting{}, properties: map[string]setting{}, sources: map[string]setting{},
	}
	if o.File == "" && len(o.Args) == 0 {
		l.config = Bare()
	}
	return l
}

// OwnDataDir is the directory of the server's own data that a configuration names,
// whatever else is wrong with it: for commands that need no more.
func OwnDataDir(o Options) (string, error) {
	l := newLoader(o)
	l.readDefines()
	if err := l.readFileOrArgs(); err != nil {
		return "", err
	}
	l.apply()
	l.applyFlags()
	if l.config.Storage.DataDir == "" {
		return "", errors.Join(append(l.problems, &Error{Kind: ErrInvalid, Key: "dataDir", Reason: "is missing"})...)
	}
	return l.config.Storage.OwnDataDir(), nil
}

func lineOf(problem error) int {
	var e *Error
	errors.As(problem, &e)
	return e.Line
}

func (l *loader) warn(s setting, format string, args ...any) {
	l.warnings = append(l.warnings, warning{s, fmt.Sprintf(format, args...)})
}

// fail records a problem at the place of a setting.
func (l *loader) fail(s setting, err error) {
	problem := &Error{Kind: ErrInvalid}
	var known *Error
	if errors.As(err, &known) {
		*problem = *known
	} else {
		problem.Reason = err.Error()
	}
	problem.File, problem.Line, problem.Origin = s.file, s.line, s.origin
	if s.name != "" {
		problem.Key = s.name
	}
	l.problems = append(l.problems, problem)
}

func (l *loader) readDefines() {
	defines := environmentDefines(l.options.Environ)
	for _, define := range l.options.Defines {
		defines = append(defines, parseDefine(define, ""))
	}
	for _, d := range defines {
		l.config.Properties[d.name] = d.value
		k, name := findProperty(d.name)
		switch {
		case k != nil && k.place == inFile:
			l.warn(d, "a -D does not reach it, as in Apache; write %s=%s into zoo.cfg", name, d.value)
		case k != nil:
			l.properties[d.name] = d
		case d.name == "fsync.warningthresholdms":
			d.name = "zookeeper." + d.name
			if _, given := l.properties[d.name]; !given {
				l.properties[d.name] = d
			}
		case strings.HasPrefix(d.name, "zookeeper.") && !logging(d.name):
			l.warn(d, "is not a property of this server")
		}
	}
}

// logging reports whether a property belongs to Apache's logging, which every
// start script of theirs sets.
func logging(property string) bool {
	return strings.HasPrefix(property, "zookeeper.log.") || strings.HasPrefix(property, "zookeeper.root.logger") ||
		strings.HasPrefix(property, "zookeeper.console.") || strings.HasPrefix(property, "zookeeper.tracelog.")
}

func (l *loader) readFileOrArgs() error {
	switch {
	case l.options.File != "" && len(l.options.Args) > 0:
		return &Error{Kind: ErrInvalid, Reason: "give either a file or clientPort and dataDir, not both"}
	case l.options.File != "":
		return l.readFile()
	}
	return l.readArgs()
}

func (l *loader) readArgs() error {
	names := []string{"clientPort", "dataDir", "tickTime", "maxClientCnxns"}
	if n := len(l.options.Args); n == 1 || n > len(names) {
		return &Error{Kind: ErrInvalid, Reason: fmt.Sprintf(
			"%d arguments: give a zoo.cfg, or clientPort dataDir [tickTime [maxClientCnxns]]", n)}
	}
	for i, value := range l.options.Args {
		l.parsed[names[i]] = setting{name: names[i], value: value, origin: fmt.Sprintf("argument %d", i+1)}
	}
	return nil
}

func (l *loader) readFile() error {
	path := l.options.File
	text, err := readText(path)
	if err != nil {
		return err
	}
	properties, hadBOM, err := parseProperties(path, text)
	if err != nil {
		return err
	}
	l.config.File, l.config.Text = path, string(text)
	if hadBOM {
		l.warn(setting{name: "byte order mark", file: path, line: 1},
			"is skipped; Apache takes it for a part of the first line and misses that setting")
	}
	last := map[string]int{}
	for i, p := range properties {
		last[p.key] = i
	}
	for i, p := range properties {
		s := setting{name: p.key, value: p.value, file: path, line: p.line}
		if last[p.key] != i {
			l.warn(s, "is written again in line %d, which wins", properties[last[p.key]].line)
			continue
		}
		l.sort(s)
	}
	return nil
}

// readText reads a file that may be a pipe, so its size is not asked for.
func readText(path string) ([]byte, error) {
	text, err := readAtMost(path, maxFileBytes)
	if err != nil {
		return nil, &Error{Kind: ErrInvalid, File: path, Reason: reason(err)}
	}
	return text, nil
}

func readAtMost(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("is larger than %d bytes", limit)
	}
	return text, err
}

// reason drops the path from a file error, because our error names it already.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// sort puts a line of the file where Apache would: to the parser, or among the
// system properties.
func (l *loader) sort(s setting) {
	k := find(s.name)
	property := "zookeeper." + s.name
	switch {
	case k != nil && k.place == inFile:
		l.parsed[s.name] = s
		return
	case k != nil && k.place == byDefine:
		l.warn(s, "has no effect in zoo.cfg, as in Apache; start with -D%s=%s", k.propertyName(), s.value)
	case k != nil:
		l.properties[property] = s
	case findDocumented(s.name) != nil:
		l.takeDocumented(s, findDocumented(s.name))
	case strings.HasPrefix(s.name, "zookeeper."):
		l.warn(s, "has no effect, because Apache puts another zookeeper. before it; write %s",
			strings.TrimPrefix(s.name, "zookeeper."))
	case similar(s.name) != "":
		l.warn(s, "unknown key without effect; did you mean %s?", similar(s.name))
	default:
		l.warn(s, "unknown key without effect")
	}
	l.config.Properties[property] = s.value
}

// takeDocumented accepts a name that Apache's manual prints and Apache does not
// read, unless the working name is given too.
func (l *loader) takeDocumented(s setting, k *key) {
	property := k.propertyName()
	if _, given := l.properties[property]; given {
		l.warn(s, "Apache does not read this name; %s is given and wins", k.name)
		return
	}
	l.warn(s, "Apache does not read this name, although its manual prints it; it is taken as %s, and only here", k.name)
	l.properties[property] = s
}

// apply hands every setting that was given to its row.
func (l *loader) apply() {
	for _, k := range table() {
		for _, s := range l.given(k) {
			l.sources[s.name] = s
			if k.missed != nil && k.missed(s.value) {
				l.warn(s, "has no effect. %s", strings.TrimSuffix(k.note, "."))
			}
			if k.set == nil {
				continue
			}
			var other fallback
			switch err := k.set(l.config, s.value); {
			case errors.As(err, &other):
				l.warn(s, "%s", other.text)
			case err != nil:
				l.fail(s, err)
			}
		}
	}
	l.config.Throttle.derive()
}

// given returns what was written for a row, in order of the names. A setting
// that came as a -D is named as in zoo.cfg.
func (l *loader) given(k *key) []setting {
	from, prefix := l.parsed, ""
	if k.place != inFile {
		from, prefix = l.properties, "zookeeper."
	}
	if k.family() == "" {
		name := k.name
		if k.place != inFile {
			name = k.propertyName()
		}
		s, ok := from[name]
		if !ok {
			return nil
		}
		s.name = k.name
		return []setting{s}
	}
	var all []setting
	for name, s := range from {
		if name, ok := strings.CutPrefix(name, prefix); ok && find(name) == k {
			s.name = name
			all = append(all, s)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}

// deriveAndValidate fills in what follows other settings and checks relations.
func (l *loader) deriveAndValidate() {
	c := l.config
	if c.Storage.LogDir == "" {
		c.Storage.LogDir = c.Storage.DataDir
		l.sources["dataLogDir"] = setting{name: "dataLogDir", origin: "follows dataDir"}
	}
	minimum, maximum := c.Session.derive()
	if minimum {
		l.sources["minSessionTimeout"] = setting{name: "minSessionTimeout", origin: "follows tickTime"}
	}
	if maximum {
		l.sources["maxSessionTimeout"] = setting{name: "maxSessionTimeout", origin: "follows tickTime"}
	}
	if _, given := l.sources["jute.maxbuffer.extrasize"]; !given {
		l.sources["jute.maxbuffer.extrasize"] = setting{name: "jute.maxbuffer.extrasize", origin: "follows jute.maxbuffer"}
	}
	if c.Ensemble.ReadOnlyMode {
		c.Words.allow("isro") // clients look for a server that takes writes with it
	}
	if len(l.problems) > 0 {
		return // relations of values that could not be read mean nothing
	}
	if err := c.Validate(); err != nil {
		l.failAtSource(err)
	}
	if host := c.Listen.Host; host != "" && len(l.problems) == 0 {
		if _, err := l.options.LookupHost(host); err != nil {
			l.fail(l.sources["clientPortAddress"], fmt.Errorf("%s cannot be resolved", host))
		}
	}
}

// failAtSource finds out where the setting that an error names was written.
func (l *loader) failAtSource(err error) {
	var problem *Error
	if !errors.As(err, &problem) {
		l.problems = append(l.problems, err)
		return
	}
	s := l.sources[problem.Key]
	if other := l.sources["maxSessionTimeout"]; problem.Key == "minSessionTimeout" && s.file == "" {
		s = other // the shorter limit follows the tick, the longer one was written
	}
	if followed, ok := strings.CutPrefix(s.origin, "follows "); ok {
		s = l.sources[followed]
		s.name = problem.Key
	}
	if s.source() == "" {
		s = setting{name: problem.Key, file: l.config.File}
	}
	l.fail(s, problem)
}

// absolute is used for messages, so that a relative path names one place.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
