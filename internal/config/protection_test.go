package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zooraft/zooraft/internal/auth"
)

// dump prints the fields of a configuration, one concern a line.
func dump(c *Config) string {
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v",
		c.Listen, c.Session, c.Storage, c.Limits, c.Throttle, c.Security, c.Words, c.Admin, c.Metrics, c.Containers, c.Ensemble)
}

func TestProtectionThatIsNotThereStopsTheStart(t *testing.T) {
	for _, line := range []string{
		"secureClientPort=2281", "sslQuorum=true", "portUnification=true", "client.portUnification=true",
		"ssl.keyStore.location=/k", "ssl.quorum.keyStore.location=/k", "ssl.clientAuth=need",
		"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "authProvider.x509=X",
		"sessionRequireClientSASLAuth=true", "enforce.auth.enabled=TRUE", "quorum.auth.enableSasl=true", "audit.enable=true",
		"admin.forceHttps=true", "admin.needClientAuth=true", "admin.portUnification=true",
	} {
		t.Run(line, func(t *testing.T) {
			name, _, _ := strings.Cut(line, "=")
			path := writeConfig(t, small+line)
			_, _, err := load(t, Options{File: path})
			var problem *Error
			if !errors.As(err, &problem) || problem.Kind != ErrUnprotected || problem.Key != name || problem.Line != 3 ||
				problem.ExitCode() != ExitInvalid {
				t.Errorf("error %v", err)
			}
			c, report, err := load(t, Options{File: path, AllowUnprotected: true})
			if err != nil || !c.Security.AllowUnprotected || len(report.Warnings) != 1 || report.Warnings[0].Key != name {
				t.Errorf("with --allow-unprotected: error %v, warnings %v", err, report.Warnings)
			}
		})
	}
}

func TestProtectionByDefineStopsTheStart(t *testing.T) {
	_, _, err := load(t, Options{File: writeConfig(t, small), Environ: []string{"SERVER_JVMFLAGS=-Dzookeeper.ssl.keyStore.location=/k"}})
	if !errors.Is(err, ErrUnprotected) || !strings.Contains(err.Error(), "SERVER_JVMFLAGS: ssl.keyStore.location") {
		t.Errorf("error %v", err)
	}
}

func TestProtectionThatIsTurnedOffIsAccepted(t *testing.T) {
	for _, line := range []string{
		"sslQuorum=false", "portUnification=false", "client.portUnification=false", "sessionRequireClientSASLAuth=false",
		"enforce.auth.enabled=false", "enforce.auth.schemes=sasl", "quorum.auth.enableSasl=false", "audit.enable=false",
		"quorum.auth.server.saslLoginContext=QuorumServer", "admin.forceHttps=false", "fips-mode=true", "sslQuorumReloadCertFiles=true", "secureClientPort=0",
	} {
		if _, report, err := load(t, Options{File: writeConfig(t, small+line)}); err != nil || len(report.Warnings) > 0 {
			t.Errorf("%s: error %v, warnings %v", line, err, report.Warnings)
		}
	}
	if _, _, err := load(t, Options{File: writeConfig(t, small+"sslQuorum=maybe")}); !errors.Is(err, ErrInvalid) {
		t.Errorf("error %v for a value that Apache refuses", err)
	}
}

func TestGroupsAndWeightsAreRefusedWhateverIsAllowed(t *testing.T) {
	const three = "initLimit=5\nsyncLimit=2\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n"
	for name, text := range map[string]string{
		"groups":  three + "group.1=1:2:3\n",
		"weights": three + "group.1=1:2:3\nweight.1=1\nweight.2=0\nweight.3=1\n",
	} {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unprotected %v", name, allowed), func(t *testing.T) {
				path := writeConfig(t, small+text)
				writeMyID(t, path, "1")
				_, _, err := load(t, Options{File: path, AllowUnprotected: allowed})
				var problem *Error
				if !errors.As(err, &problem) || problem.Kind != ErrNotBuilt || problem.Key == "" || problem.ExitCode() != ExitInvalid {
					t.Errorf("error %v", err)
				}
			})
		}
	}
	path := writeConfig(t, small+three)
	writeMyID(t, path, "1")
	if _, _, err := load(t, Options{File: path}); err != nil {
		t.Errorf("three servers: %v", err)
	}
}

// What is accepted here must start, and what the room auth offers must be
// accepted here.
func TestTheDigestAlgorithmsAreThoseOfTheRoomAuth(t *testing.T) {
	for _, name := range append([]string{"MD2", "ROT13", "sha-256", "SHA3-123", ""}, digestAlgorithms...) {
		_, offered := auth.New(auth.Config{DigestAlgorithm: name})
		accepted := Security{DigestAlgorithm: name}.Validate()
		if (offered == nil) != (accepted == nil) {
			t.Errorf("%q: offered %v, accepted %v", name, offered, accepted)
		}
	}
}
