package shell

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zooraft/zooraft/test/peer"
	"github.com/zooraft/zooraft/test/toolchain"
)

func TestWaitHoldsACommandUntilAServerIsThere(t *testing.T) {
	port := peer.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if r := run(t, address, "", "--wait", "200ms", "ls", "/"); r.code != 3 {
		t.Errorf("a wait in vain: exit code %d", r.code)
	}
	waiting := exec.Command(peer.ZooraftBinary(t, false), "shell", "-server", address, "--wait", "ls", "/")
	out, err := waiting.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(peer.ZooraftBinary(t, false), "serve", "--listen", address, "--data-dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Signal(os.Interrupt)
		server.Wait()
	}()
	text, err := io.ReadAll(out)
	if waited := waiting.Wait(); waited != nil || err != nil || string(text) != "[zookeeper]\n" {
		t.Errorf("it answered %q, %v, %v", text, err, waited)
	}
}

func TestSettingsComeFromFlagsEnvironmentAndTheFileOfClusters(t *testing.T) {
	one, other := peer.StartZooraft(t, peer.Options{}).Address, peer.StartZooraft(t, peer.Options{}).Address
	must(t, one, "", "create", "/app")
	must(t, one, "", "--auth", "digest:ann:secret", "create", "/app/one", "x", "auth::cdrwa")
	must(t, other, "", "create", "/other")
	home := t.TempDir()
	secret, clusters := filepath.Join(home, "identities"), filepath.Join(home, ".config", "zooraft", "clusters.conf")
	if err := os.MkdirAll(filepath.Dir(clusters), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		secret:   "# who we are\ndigest:ann:secret\n",
		clusters: "[first]\nserver = " + one + "\nchroot = /app\nauth-file = " + secret + "\n\n[second]\nserver = " + other + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name      string
		env, args []string
		out       string
	}{
		{"flags", nil, []string{"-server", one, "--chroot", "/app", "--auth", "digest:ann:secret", "get", "/one"}, "x\n"},
		{"two dashes", nil, []string{"--server=" + one + "/app", "--auth=digest:ann:secret", "get", "/one"}, "x\n"},
		{"environment", []string{"ZOORAFT_SERVER=" + one, "ZOORAFT_CHROOT=/app", "ZOORAFT_AUTH=digest:ann:secret"}, []string{"get", "/one"}, "x\n"},
		{"a cluster", nil, []string{"--cluster", "first", "get", "/one"}, "x\n"},
		{"a cluster of the environment", []string{"ZOORAFT_CLUSTER=first"}, []string{"get", "/one"}, "x\n"},
		{"a flag over the cluster", nil, []string{"--cluster", "first", "-server", other, "--chroot", "/", "ls", "/"}, "[other, zookeeper]\n"},
		{"a flag over the environment", []string{"ZOORAFT_SERVER=127.0.0.1:1"}, []string{"-server", other, "ls", "/"}, "[other, zookeeper]\n"},
		{"connect to a cluster", nil, []string{"-server", one, "connect", "@second"}, ""},
	} {
		if r := runIn(t, home, row.env, "", row.args...); r.code != 0 || r.out != row.out {
			t.Errorf("%s: %q with exit code %d, %s", row.name, r.out, r.code, r.err)
		}
	}
	if r := runIn(t, home, nil, "", "--cluster", "third", "ls", "/"); r.code != 2 || !strings.Contains(r.err, "no cluster is called third") {
		t.Errorf("an unknown cluster: exit code %d, %s", r.code, r.err)
	}
	if r := runIn(t, home, nil, "connect @second\nls /\n", "-server", one); r.out != "[other, zookeeper]\n" {
		t.Errorf("after connect @second: %q, %s", r.out, r.err)
	}
}

// authority issues certificates for 127.0.0.1 and for a client.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", nil)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name+".pem") }

// issue writes NAME.pem with key and certificate, and NAME-cert.pem with the
// certificate alone.
func (a *authority) issue(t *testing.T, name string, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), cert...)
	for file, text := range map[string][]byte{a.path(name): both, a.path(name + "-cert"): cert} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// The way a client's TLS is judged does not depend on the server: any that
// speaks it will do, here one in front of ours.
func TestTheServersCertificateIsVerified(t *testing.T) {
	server := peer.StartZooraft(t, peer.Options{})
	a := newAuthority(t)
	a.issue(t, "server", a.cert)
	pair, err := tls.LoadX509KeyPair(a.path("server"), a.path("server"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go forward(listener, server.Address)
	address := listener.Addr().String()
	for _, row := range []struct {
		name string
		args []string
		code int
	}{
		{"trusted", []string{"--tls-ca", a.path("ca-cert")}, 0},
		{"unknown", []string{"--tls"}, 3},
		{"another name", []string{"--tls-ca", a.path("ca-cert"), "--tls-server-name", "elsewhere"}, 3},
		{"not verified", []string{"--tls-insecure"}, 0},
		{"plain", nil, 3},
		{"no certificate", []string{"--tls-ca", filepath.Join(a.dir, "none")}, 1},
	} {
		r := run(t, address, "", append(row.args, "ls", "/")...)
		if r.code != row.code || row.code == 0 && r.out != "[zookeeper]\n" {
			t.Errorf("%s: exit code %d, %q, %s", row.name, r.code, r.out, r.err)
		}
	}
}

// forward joins every connection with one to a server.
func forward(listener net.Listener, to string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			server, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer server.Close()
			go func() {
				defer server.Close()
				_, _ = io.Copy(server, from) // the end of either is the end of both
			}()
			_, _ = io.Copy(from, server)
		}()
	}
}

func TestAClientsCertificateIsItsIdentityAtApachesServer(t *testing.T) {
	toolchain.Need(t, "java", "mvn")
	a := newAuthority(t)
	a.issue(t, "server", a.cert)
	a.issue(t, "client", a.cert)
	port := peer.FreePort(t)
	peer.StartApache(t, peer.Options{
		Config: map[string]string{"secureClientPort": fmt.Sprint(port), "secureClientPortAddress": "127.0.0.1"},
		Defines: map[string]string{
			"zookeeper.serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
			"zookeeper.ssl.keyStore.location":   a.path("server"),
			"zookeeper.ssl.trustStore.location": a.path("ca-cert"),
			"zookeeper.authProvider.x509":       "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
		},
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	out := must(t, address, "", "--tls-ca", a.path("ca-cert"), "--tls-cert", a.path("client"), "whoami")
	if !strings.Contains(out, "x509: CN=client\n") {
		t.Errorf("whoami says\n%s", out)
	}
	properties := filepath.Join(t.TempDir(), "client.properties")
	text := "zookeeper.client.secure=true\nzookeeper.ssl.keyStore.location=" + a.path("client") +
		"\nzookeeper.ssl.trustStore.location=" + a.path("ca-cert") + "\n"
	if err := os.WriteFile(properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, address, "", "-client-configuration", properties, "whoami"); !strings.Contains(out, "x509: CN=client\n") {
		t.Errorf("with zkCli's configuration whoami says\n%s", out)
	}
}
