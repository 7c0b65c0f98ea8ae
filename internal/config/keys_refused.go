package config

// refusedKeys ask for protection that this version does not have. Starting
// without it would leave a server open that its operator believes closed, so
// the start stops unless --allow-unprotected is given.
func refusedKeys() []key {
	notZero := func(raw string) bool { return trim(raw) != "" && raw != "0" }
	strict := func(_ *Config, raw string) error { _, err := parseStrictBool(raw); return err }
	number := func(_ *Config, raw string) error { _, err := parseInt(raw); return err }
	const tls, sasl, audit = "TLS is not in this version.", "SASL is not in this version.", "The audit log is not in this version."
	return []key{
		{name: "secureClientPort", note: tls, set: number},
		{name: "secureClientPortAddress", note: tls, asks: notZero},
		{name: "sslQuorum", note: tls, set: strict, asks: isTrue},
		{name: "portUnification", note: tls, set: strict, asks: isTrue},
		{name: "client.portUnification", note: tls, place: inBoth, asks: isTrue},
		{name: "ssl.*", note: tls, place: inBoth},
		{name: "admin.forceHttps", note: tls, place: inBoth, asks: isTrue},
		{name: "admin.portUnification", note: tls, place: inBoth, asks: isTrue},
		{name: "admin.needClientAuth", note: tls, place: inBoth, asks: isTrue},
		{name: "authProvider.*", note: "Further authentication providers are not in this version.", place: inBoth},
		{name: "sessionRequireClientSASLAuth", note: sasl, place: inBoth, asks: isTrue},
		{name: "enforce.auth.enabled", note: "Forced authentication is not in this version.", place: inBoth, asks: isTrue},
		{name: "enforce.auth.schemes", note: "Belongs to enforce.auth.enabled.", place: inBoth, asks: func(string) bool { return false }},
		{name: "quorum.auth.enableSasl", note: sasl, set: strict, asks: isTrue},
		{name: "quorum.auth.serverRequireSasl", note: sasl, set: strict, asks: isTrue},
		{name: "quorum.auth.learnerRequireSasl", note: sasl, set: strict, asks: isTrue},
		{name: "quorum.auth.server.saslLoginContext", note: "Belongs to quorum.auth.enableSasl.", asks: func(string) bool { return false }},
		{name: "quorum.auth.learner.saslLoginContext", note: "Belongs to quorum.auth.enableSasl.", asks: func(string) bool { return false }},
		{name: "quorum.auth.kerberos.servicePrincipal", note: "Belongs to quorum.auth.enableSasl.", asks: func(string) bool { return false }},
		{name: "audit.enable", note: audit, place: inBoth, asks: isTrue},
	}
}

// notBuilt is the one place that refuses what later versions will do: it goes
// when the server can be one of an ensemble.
func notBuilt(e Ensemble) error {
	if len(e.Servers) < 2 && !e.Distributed() {
		return nil
	}
	reason := "an ensemble is not available in this version: with one server line this server runs alone"
	if len(e.Servers) == 1 {
		reason = "an ensemble is not available in this version: leave out standaloneEnabled=false to run this server alone"
	}
	return &Error{Kind: ErrNotBuilt, Key: e.Servers[len(e.Servers)-1].key(), Reason: reason}
}
