package bench

import (
	"math/bits"
	"time"
)

// subBits is the number of bits kept of a latency below its leading one: a
// bucket is less than 1/128 of its value wide.
const subBits = 7

// histogram counts durations in buckets of equal relative width. Its zero value
// is empty.
type histogram struct {
	counts [(64 - subBits) << subBits]int64
	total  int64
	sum    time.Duration
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.total++
	h.sum += d
	h.max = max(h.max, d)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

func (h *histogram) mean() time.Duration {
	if h.total == 0 {
		return 0
	}
	return h.sum / time.Duration(h.total)
}

// quantile returns an upper bound of the smallest duration that a share q of
// all is not above; it is within one bucket of the exact one.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int64(q * float64(h.total))
	if float64(rank) < q*float64(h.total) {
		rank++
	}
	seen := int64(0)
	for i, n := range h.counts {
		seen += n
		if n > 0 && seen >= rank {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}

// bucket numbers values below 2^subBits by themselves, and larger ones by their
// leading bit and the subBits bits after it.
func bucket(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	return shift<<subBits + int(v>>shift)
}

// upper is the largest value of a bucket.
func upper(i int) uint64 {
	if i < 1<<subBits {
		return uint64(i)
	}
	shift := i>>subBits - 1
	return uint64(i-shift<<subBits+1)<<shift - 1
}
