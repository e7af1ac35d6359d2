package main

// Go has no pool for blocking code: a goroutine that blocks in a system call leaves its P to others. So a job is
// a goroutine that answers through a channel, which is what a user of Go writes in its place.

func one() uint64 { return 1 }

func job() <-chan uint64 {
	answer := make(chan uint64, 1)
	go func() { answer <- one() }()
	return answer
}

// blocking: the root starts ops jobs that do nothing, then awaits them in order.
func blocking(r run) outcome {
	return root(func() outcome {
		stop := stopwatch()
		jobs := make([]<-chan uint64, r.ops)
		for i := range jobs {
			jobs[i] = job()
		}
		sum := uint64(0)
		for _, answer := range jobs {
			sum += <-answer
		}
		measured := stop()
		check(sum == r.ops, "each job answered")
		return measured
	})
}

// blockingSeq: batch goroutines, each of which awaits a job before it starts the next.
func blockingSeq(r run) outcome {
	jobs := r.ops / r.batch
	all := run{ops: r.ops, batch: r.ops} // one round
	return rounds(all, r.batch, func(g *gate) {
		for range r.batch {
			go func() {
				sum := uint64(0)
				for range jobs {
					sum += <-job()
				}
				check(sum == jobs, "each job answered")
				g.pass()
			}()
		}
	})
}
