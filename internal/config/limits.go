package config

// Limits bounds what one request, one response or all of them may hold.
type Limits struct {
	// MaxFrame is the largest request frame in bytes. Above 0. Default 1048575,
	// one less than a mebibyte (Apache's jute.maxbuffer). Clients apply the same
	// number to what they receive.
	MaxFrame int
	// FrameSlack is added to MaxFrame for the length of one string or buffer
	// within a record, in bytes; at least 1024. Default: MaxFrame (Apache's
	// jute.maxbuffer.extrasize).
	FrameSlack int
	// GlobalOutstanding is the number of requests in work above which the server
	// stops reading from connections that have requests of their own in work.
	// Default 1000 (Apache's globalOutstandingLimit). Each of n > 2 participants
	// of an ensemble takes a share of 1/(n-1).
	GlobalOutstanding int
	// LargeRequestMaxBytes bounds the sum of the large requests in work. Above
	// 0. Default 100 MiB (Apache).
	LargeRequestMaxBytes int
	// LargeRequestThreshold is the size in bytes from which a request is large;
	// -1 turns the bound off. Default -1 (Apache).
	LargeRequestThreshold int
}

// DefaultLimits returns Apache's defaults.
func DefaultLimits() Limits {
	return Limits{
		MaxFrame:              0xfffff,
		FrameSlack:            0xfffff,
		GlobalOutstanding:     1000,
		LargeRequestMaxBytes:  100 << 20,
		LargeRequestThreshold: -1,
	}
}

// minFrameSlack is Apache's floor for jute.maxbuffer.extrasize.
const minFrameSlack = 1024

// Validate checks relations and ranges.
func (l Limits) Validate() error {
	switch {
	case l.MaxFrame <= 0:
		return invalid("jute.maxbuffer", "%d must be above 0, or every request would be refused", l.MaxFrame)
	case l.FrameSlack < minFrameSlack:
		return invalid("jute.maxbuffer.extrasize", "%d must be %d or more", l.FrameSlack, minFrameSlack)
	case l.LargeRequestMaxBytes <= 0:
		return invalid("largeRequestMaxBytes", "%d must be above 0", l.LargeRequestMaxBytes)
	}
	return nil
}
