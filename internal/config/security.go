package config

import "strings"

// Security says who may do what.
type Security struct {
	// SkipACL turns every access check off. Default false (Apache's skipACL=yes).
	SkipACL bool
	// DigestEnabled offers the digest scheme. Default true (Apache's
	// DigestAuthenticationProvider.enabled).
	DigestEnabled bool
	// DigestAlgorithm hashes user:password, in Java's spelling. Default SHA1
	// (Apache's DigestAuthenticationProvider.digestAlg).
	DigestAlgorithm string
	// SuperDigest is the digest id that may do everything, super:<base64>, or
	// empty (Apache's DigestAuthenticationProvider.superDigest).
	SuperDigest string
	// EnforceQuota refuses writes above a hard quota. Default false (Apache).
	EnforceQuota bool
	// AllowUnprotected lets the server start although a setting asks for
	// protection that this version does not have. Default false. Ours, a flag.
	AllowUnprotected bool
}

// DefaultSecurity returns Apache's defaults.
func DefaultSecurity() Security {
	return Security{DigestEnabled: true, DigestAlgorithm: "SHA1"}
}

// digestAlgorithms are the names that a Java 17 runtime knows, in upper case, but
// for MD2, which nobody should use and which is not here.
var digestAlgorithms = []string{
	"MD5", "SHA", "SHA1", "SHA-1", "SHA-224", "SHA224", "SHA-256", "SHA256", "SHA-384", "SHA384", "SHA-512", "SHA512",
	"SHA-512/224", "SHA512/224", "SHA-512/256", "SHA512/256", "SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512",
}

// Validate checks relations and ranges.
func (s Security) Validate() error {
	for _, name := range digestAlgorithms {
		if strings.EqualFold(name, s.DigestAlgorithm) {
			return nil
		}
	}
	return invalid("DigestAuthenticationProvider.digestAlg", "%q is not a digest algorithm", s.DigestAlgorithm)
}
