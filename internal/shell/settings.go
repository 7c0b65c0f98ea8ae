package shell

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zooraft/zooraft/internal/client"
	"github.com/zooraft/zooraft/internal/proto"
)

// Setting is one thing that says how to connect. Its name is that of the flag
// and of the key in the file of clusters; its variable in the environment is
// Variable. A flag wins over the environment, and that over the file.
type Setting struct {
	Name, Help string
	// Arg is what the value is called; empty for a switch.
	Arg string
	// Default is shown in the help; empty for none.
	Default string
	// Many lets the flag be given several times, and the variable and the key
	// have several values, one a line.
	Many bool
}

// Variable is the setting's name in the environment.
func (s Setting) Variable() string {
	return "ZOORAFT_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings lists all settings in the order of the help.
var Settings = []Setting{
	{Name: "server", Arg: "host:port,...[/chroot]", Default: "localhost:2181", Help: "the servers, tried in this order"},
	{Name: "cluster", Arg: "name", Help: "a cluster of the configuration file, for whatever is not given"},
	{Name: "chroot", Arg: "path", Help: "put before every path"},
	{Name: "timeout", Arg: "ms", Default: "30000", Help: "session timeout to ask for, in milliseconds"},
	{Name: "r", Help: "accept a server that has no quorum, for reading"},
	{Name: "auth", Arg: "scheme:credentials", Many: true, Help: "identity to take on; digest:user asks for the password"},
	{Name: "auth-file", Arg: "file", Help: "file of such identities, one a line"},
	{Name: "tls", Help: "speak TLS to the servers"},
	{Name: "tls-ca", Arg: "file", Help: "certificates to trust, PEM (default: the system's)"},
	{Name: "tls-cert", Arg: "file", Help: "this client's certificate, PEM"},
	{Name: "tls-key", Arg: "file", Help: "its key, PEM (default: in the certificate's file)"},
	{Name: "tls-server-name", Arg: "name", Help: "name that the server's certificate must have (default: the host)"},
	{Name: "tls-insecure", Help: "trust any certificate: for tests"},
	{Name: "client-configuration", Arg: "file", Help: "properties file of zkCli.sh, for its TLS settings with PEM files"},
}

// Values are settings by name; a switch is "true".
type Values map[string][]string

func (v Values) one(name string) string {
	if len(v[name]) == 0 {
		return ""
	}
	return v[name][len(v[name])-1]
}

func (v Values) on(name string) bool {
	on, err := strconv.ParseBool(v.one(name))
	return err == nil && on
}

// ClustersFile returns where the named clusters stand: ZOORAFT_CONFIG, or
// zooraft/clusters.conf in the user's configuration directory.
func ClustersFile(env func(string) string) string {
	if name := env("ZOORAFT_CONFIG"); name != "" {
		return name
	}
	dir := env("XDG_CONFIG_HOME")
	if dir == "" {
		dir = filepath.Join(env("HOME"), ".config")
	}
	return filepath.Join(dir, "zooraft", "clusters.conf")
}

// ReadClusters reads the file of clusters: a section [name] for each, with lines
// of key = value and # for comments. A file that does not exist has none.
func ReadClusters(name string) (map[string]Values, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	defer file.Close()
	clusters := map[string]Values{}
	var section Values
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		key, value, assigned := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = Values{}
			clusters[line[1:len(line)-1]] = section
		case !assigned || section == nil:
			return nil, failf(ErrInput, "%s:%d: neither [name] nor key = value below one", name, number)
		case !slices.ContainsFunc(Settings, func(s Setting) bool { return s.Name == key && key != "cluster" }):
			return nil, failf(ErrInput, "%s:%d: no setting is called %s", name, number, key)
		default:
			section[key] = append(section[key], value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	return clusters, nil
}

// Resolve joins flags, environment and the file of clusters into a Config.
func Resolve(flags Values, env func(string) string) (Config, error) {
	values := Values{}
	for _, s := range Settings {
		if text := env(s.Variable()); text != "" {
			values[s.Name] = []string{text}
			if s.Many {
				values[s.Name] = strings.Split(text, "\n")
			}
		}
	}
	for name, given := range flags {
		values[name] = given
	}
	if name := values.one("cluster"); name != "" {
		clusters, err := ReadClusters(ClustersFile(env))
		if err != nil {
			return Config{}, err
		}
		section, known := clusters[name]
		if !known {
			return Config{}, failf(ErrUsage, "no cluster is called %s in %s", name, ClustersFile(env))
		}
		for key, value := range section {
			if values[key] == nil {
				values[key] = value
			}
		}
	}
	config, err := values.config()
	config.Env = env
	config.Resolve = func(name string) (Config, error) {
		return Resolve(Values{"cluster": {name}}, func(key string) string {
			switch key { // only where the file is; the rest is the cluster's
			case "ZOORAFT_CONFIG", "XDG_CONFIG_HOME", "HOME":
				return env(key)
			}
			return ""
		})
	}
	return config, err
}

// config turns the values into a Config.
func (v Values) config() (Config, error) {
	config := Config{Connect: v.one("server"), Timeout: 30 * time.Second, ReadOnly: v.on("r")}
	if config.Connect == "" {
		config.Connect = "localhost:2181"
	}
	if chroot := v.one("chroot"); chroot != "" && chroot != "/" {
		servers, old, err := client.ParseConnectString(config.Connect)
		if err == nil && !proto.ValidPath(chroot) {
			err = fmt.Errorf("chroot %s is no path", chroot)
		}
		if err != nil {
			return config, failf(ErrUsage, "%v", err)
		}
		config.Connect = strings.Join(servers, ",") + old + chroot
	}
	if text := v.one("timeout"); text != "" {
		millis, err := strconv.ParseInt(text, 10, 32)
		if err != nil || millis <= 0 {
			return config, failf(ErrUsage, "-timeout needs a number of milliseconds, not %q", text)
		}
		config.Timeout = time.Duration(millis) * time.Millisecond
	}
	var err error
	if config.Auths, err = v.auths(); err != nil {
		return config, err
	}
	config.TLS, err = v.tls()
	return config, err
}

// auths reads the identities; see CompleteAuths for those without a password.
func (v Values) auths() ([]proto.AuthPacket, error) {
	lines := slices.Clone(v["auth"])
	if name := v.one("auth-file"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("identities: %w", err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	var auths []proto.AuthPacket
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		scheme, credentials, ok := strings.Cut(line, ":")
		if !ok || scheme == "" {
			return nil, failf(ErrUsage, "an identity has the form scheme:credentials")
		}
		auths = append(auths, proto.AuthPacket{Scheme: scheme, Auth: []byte(credentials)})
	}
	return auths, nil
}

// CompleteAuths asks for the passwords that digest identities lack.
func (c *Config) CompleteAuths(ask func(prompt string) (string, error)) error {
	for i, auth := range c.Auths {
		if auth.Scheme != "digest" || strings.Contains(string(auth.Auth), ":") {
			continue
		}
		if ask == nil {
			return failf(ErrUsage, "digest:%s lacks a password, and there is no terminal to ask at", auth.Auth)
		}
		password, err := ask("Password of " + string(auth.Auth) + ": ")
		if err != nil {
			return fmt.Errorf("ask for the password: %w", err)
		}
		c.Auths[i].Auth = append(append(slices.Clone(auth.Auth), ':'), password...)
	}
	return nil
}

// tls makes the TLS configuration, nil without TLS.
func (v Values) tls() (*tls.Config, error) {
	if name := v.one("client-configuration"); name != "" {
		if err := v.addProperties(name); err != nil {
			return nil, err
		}
	}
	on := v.on("tls")
	for _, name := range []string{"tls-ca", "tls-cert", "tls-key", "tls-server-name"} {
		on = on || v.one(name) != ""
	}
	if !on && !v.on("tls-insecure") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: v.one("tls-server-name"), InsecureSkipVerify: v.on("tls-insecure")}
	if name := v.one("tls-ca"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("certificates to trust: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, failf(ErrInput, "%s holds no PEM certificate", name)
		}
	}
	cert, key := v.one("tls-cert"), v.one("tls-key")
	if cert == "" {
		return config, nil
	}
	if key == "" {
		key = cert
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("this client's certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// clientProperties are the properties of zkCli's configuration that have a
// setting here.
var clientProperties = map[string]string{
	"zookeeper.client.secure":           "tls",
	"zookeeper.ssl.keyStore.location":   "tls-cert",
	"zookeeper.ssl.trustStore.location": "tls-ca",
}

// addProperties reads a file of -client-configuration. Key stores of Java's own
// formats are refused by name: a PEM file holds the same.
func (v Values) addProperties(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("client configuration: %w", err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "zookeeper.ssl.hostnameVerification" && value == "false" {
			return failf(ErrInput, "%s: %s=false is not supported; -tls-server-name names the certificate's host", name, key)
		}
		setting, known := clientProperties[key]
		if !known || v[setting] != nil {
			continue
		}
		if setting != "tls" && !strings.HasSuffix(value, ".pem") {
			return failf(ErrInput, "%s: %s must be a PEM file (ending in .pem), not %s", name, key, value)
		}
		v[setting] = []string{value}
	}
	return nil
}
