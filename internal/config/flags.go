package config

import "net"

// applyFlags puts the flags over everything else.
func (l *loader) applyFlags() {
	o, c := l.options, l.config
	if o.Listen != "" {
		s := setting{name: "clientPort", value: o.Listen, origin: "--listen"}
		host, port, err := splitListen(o.Listen)
		if err != nil {
			l.fail(s, err)
		}
		c.Listen.Enabled, c.Listen.Host, c.Listen.Port = true, host, port
		l.sources["clientPort"], l.sources["clientPortAddress"] = s, s
	}
	if o.DataDir != "" {
		c.Storage.DataDir = o.DataDir
		l.sources["dataDir"] = setting{name: "dataDir", origin: "--data-dir"}
	}
	c.Listen.PortFile = o.PortFile
	c.Security.AllowUnprotected = o.AllowUnprotected
}

func splitListen(listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		host, text = "", listen
	}
	port, err = parsePort(text)
	return host, port, err
}
