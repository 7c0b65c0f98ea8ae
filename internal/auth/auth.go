// Package auth turns credentials into identities: the ip identity that every
// connection has, and those that auth packets add (digest, super).
//
// It does not decide what an identity may do; that is the tree's ACL
// evaluation.
package auth

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"slices"
	"strings"

	"github.com/zooraft/zooraft/internal/proto"
)

// ErrAlgorithm is returned when digestAlg names no known hash.
var ErrAlgorithm = errors.New("auth: unknown digest algorithm")

// SuperID is the identity that passes every ACL.
var SuperID = proto.ID{Scheme: "super", ID: ""}

// Config says which schemes are on.
type Config struct {
	// DigestEnabled is DigestAuthenticationProvider.enabled, default true.
	DigestEnabled bool
	// DigestAlgorithm is DigestAuthenticationProvider.digestAlg by its Java
	// name, default SHA1.
	DigestAlgorithm string
	// SuperDigest is DigestAuthenticationProvider.superDigest, "user:hash";
	// empty (the default) means that there is no super user.
	SuperDigest string
}

// DefaultConfig returns Apache's defaults.
func DefaultConfig() Config { return Config{DigestEnabled: true, DigestAlgorithm: "SHA1"} }

// algorithms are Java's message digests by their names there; only MD2 is not
// offered.
var algorithms = map[string]func() hash.Hash{
	"MD5": md5.New, "SHA": sha1.New, "SHA1": sha1.New, "SHA-1": sha1.New,
	"SHA-224": sha256.New224, "SHA224": sha256.New224, "SHA-256": sha256.New, "SHA256": sha256.New,
	"SHA-384": sha512.New384, "SHA384": sha512.New384, "SHA-512": sha512.New, "SHA512": sha512.New,
	"SHA-512/224": sha512.New512_224, "SHA512/224": sha512.New512_224,
	"SHA-512/256": sha512.New512_256, "SHA512/256": sha512.New512_256,
	"SHA3-224": func() hash.Hash { return sha3.New224() }, "SHA3-256": func() hash.Hash { return sha3.New256() },
	"SHA3-384": func() hash.Hash { return sha3.New384() }, "SHA3-512": func() hash.Hash { return sha3.New512() },
}

// Authenticator answers auth packets. It is immutable and safe for any number
// of goroutines.
type Authenticator struct {
	config  Config
	newHash func() hash.Hash
}

// New returns an authenticator, or ErrAlgorithm.
func New(c Config) (*Authenticator, error) {
	h := algorithms[strings.ToUpper(c.DigestAlgorithm)]
	if h == nil {
		return nil, fmt.Errorf("%w %q", ErrAlgorithm, c.DigestAlgorithm)
	}
	return &Authenticator{config: c, newHash: h}, nil
}

// Connection returns the identity that a connection from addr has from the
// start: its textual address as Java prints it, IPv6 uncompressed.
func Connection(addr netip.Addr) proto.ID {
	return proto.ID{Scheme: "ip", ID: javaAddress(addr.Unmap())}
}

func javaAddress(a netip.Addr) string {
	if !a.Is6() {
		return a.String()
	}
	b := a.As16()
	var s strings.Builder
	for i := 0; i < 16; i += 2 {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%x", int(b[i])<<8|int(b[i+1]))
	}
	if z := a.Zone(); z != "" {
		s.WriteString("%" + z)
	}
	return s.String()
}

// Authenticate returns the identities that the packet proves, none if the
// scheme is unknown or the credentials are refused.
func (a *Authenticator) Authenticate(p proto.AuthPacket, connection proto.ID) []proto.ID {
	switch p.Scheme {
	case "ip":
		return []proto.ID{connection}
	case "digest":
		if !a.config.DigestEnabled || p.Auth == nil {
			return nil
		}
		id := a.Digest(p.Auth)
		if id == a.config.SuperDigest {
			return []proto.ID{SuperID, {Scheme: "digest", ID: id}}
		}
		return []proto.ID{{Scheme: "digest", ID: id}}
	}
	return nil
}

// Digest returns the identity of "user:password": the user, a colon, and the
// hash of the whole in base64. Bytes that are not UTF-8 count as U+FFFD.
func (a *Authenticator) Digest(credentials []byte) string {
	text := proto.DecodeText(credentials)
	user, _, _ := strings.Cut(text, ":")
	h := a.newHash()
	h.Write([]byte(text)) // a hash.Hash never fails
	return user + ":" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Add returns ids with those of more that it lacks. It never changes ids,
// which other goroutines may be reading.
func Add(ids []proto.ID, more ...proto.ID) []proto.ID {
	out := slices.Clone(ids)
	for _, id := range more {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
