// CoDel after RFC 8289: go build codel.go; sojourn judge --discipline codel -- ./codel
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
)

type packet struct{ T, Id, Size, Ecn int64 }
type params struct{ Target, Interval, Limit, Mtu, Ecn int64 }
type request struct {
	packet
	Judge  int
	Params params
	Op     string
}
type answer struct {
	Id      *int64  `json:"id"`
	Dropped []int64 `json:"dropped"`
	Marked  []int64 `json:"marked"`
}
type codel struct {
	params
	queue                                     []packet
	bytes, firstAbove, dropNext, count, last_ int64
	dropping                                  bool
}

func (c *codel) take(now int64) (p *packet, late bool) {
	if len(c.queue) > 0 {
		p = &c.queue[0]
		c.queue = c.queue[1:]
		c.bytes -= p.Size
	}
	if p == nil || now-p.T < c.Target || c.bytes <= c.Mtu {
		c.firstAbove = 0
	} else if c.firstAbove == 0 {
		c.firstAbove = now + c.Interval
	}
	return p, c.firstAbove > 0 && now >= c.firstAbove
}

func (c *codel) law(t int64) int64 { return t + int64(float64(c.Interval)/math.Sqrt(float64(c.count))) }

func (c *codel) dequeue(now int64) answer {
	a := answer{Dropped: []int64{}, Marked: []int64{}}
	p, late := c.take(now)
	entering := late && !c.dropping
	if entering {
		if c.count -= c.last_; c.count < 1 || now-c.dropNext >= 16*c.Interval {
			c.count = 1
		}
		c.last_, c.dropNext = c.count, c.law(now)
	}
	for c.dropping = late; c.dropping && (entering || now >= c.dropNext); {
		if !entering {
			c.count++
		}
		marks := c.Ecn != 0 && p.Ecn != 0
		if marks {
			a.Marked = append(a.Marked, p.Id)
		} else {
			a.Dropped = append(a.Dropped, p.Id)
			p, late = c.take(now)
			c.dropping = late || entering
		}
		if c.dropping && !entering {
			c.dropNext = c.law(c.dropNext)
		}
		if marks || entering {
			break
		}
	}
	if p != nil {
		a.Id = &p.Id
	}
	return a
}

func main() {
	var c codel
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		a := answer{Dropped: []int64{}, Marked: []int64{}}
		switch {
		case r.Judge > 0:
			c = codel{params: r.Params}
		case r.Op == "dequeue":
			a = c.dequeue(r.T)
		case int64(len(c.queue)) >= c.Limit:
			a.Dropped = append(a.Dropped, r.Id)
		default:
			c.queue = append(c.queue, r.packet)
			c.bytes += r.Size
		}
		line, _ := json.Marshal(a)
		fmt.Println(string(line))
	}
}
