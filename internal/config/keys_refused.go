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
		{name: "secureClientPort", note: tls, set: number, asks: notZero},
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

// noGroups refuses groups and weights, for good: Raft's quorum is a majority of
// equal votes, and a configuration that says otherwise must not be taken for one.
func noGroups(e Ensemble) error {
	if len(e.Groups) == 0 && len(e.Weights) == 0 {
		return nil
	}
	return &Error{Kind: ErrNotBuilt, Key: "group", Reason: "groups and weights are not available: " +
		"Raft's quorum is a majority of servers. Leave out the group.N and weight.N lines"}
}
