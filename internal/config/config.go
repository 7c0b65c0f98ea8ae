package config

// Config is everything an operator can decide, one struct for each concern.
// Load makes it; it is read-only from then on.
type Config struct {
	// File is the zoo.cfg this came from, or empty.
	File string
	// Text is the text of File, for the admin command initial_configuration.
	Text string
	// Properties holds what a Java server would hold as system properties: the
	// -D definitions, and each key of the file that the parser does not know,
	// with "zookeeper." before it. For the admin command system_properties.
	Properties map[string]string

	Listen     Listen
	Session    Session
	Storage    Storage
	Limits     Limits
	Throttle   Throttle
	Security   Security
	Words      Words
	Admin      Admin
	Metrics    Metrics
	Containers Containers
	Ensemble   Ensemble
}

// Default returns what Apache ZooKeeper 3.9.5 uses for everything that a
// zoo.cfg leaves out.
func Default() *Config {
	return &Config{
		Properties: map[string]string{},
		Listen:     DefaultListen(),
		Session:    DefaultSession(),
		Storage:    DefaultStorage(),
		Limits:     DefaultLimits(),
		Throttle:   DefaultThrottle(),
		Security:   DefaultSecurity(),
		Words:      DefaultWords(),
		Admin:      DefaultAdmin(),
		Metrics:    DefaultMetrics(),
		Containers: DefaultContainers(),
		Ensemble:   DefaultEnsemble(),
	}
}

// Bare returns what `zooraft serve` uses when it is given no file: reachable
// from this machine only, with its data beside it, every four-letter word that
// changes nothing, and TTL nodes.
func Bare() *Config {
	c := Default()
	c.Listen.Enabled, c.Listen.Host, c.Listen.Port = true, "127.0.0.1", 2181
	c.Session.TickTime = bareTickTime
	c.Storage.DataDir = "./zooraft-data"
	c.Words = readOnlyWords()
	c.Containers.ExtendedTypes = true
	c.Admin.Host = "127.0.0.1"
	return c
}

// Complete fills in what follows from other values, for a configuration that
// was not made by Load.
func (c *Config) Complete() {
	if c.Storage.LogDir == "" {
		c.Storage.LogDir = c.Storage.DataDir
	}
	c.Session.derive()
	c.Throttle.derive()
}

// Validate checks every concern and returns the first thing that is wrong.
func (c *Config) Validate() error {
	for _, check := range []func() error{
		c.Listen.Validate, c.Session.Validate, c.Storage.Validate, c.Limits.Validate,
		c.Throttle.Validate, c.Security.Validate, c.Words.Validate, c.Admin.Validate,
		c.Metrics.Validate, c.Containers.Validate, c.Ensemble.Validate,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
