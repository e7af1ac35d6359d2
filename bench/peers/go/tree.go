package main

// forkJoinFib: a call of n >= 2 forks the call of n - 1 as a goroutine, makes that of n - 2 in place, and joins.
func forkJoinFib(run) outcome {
	n := argument("--n", 32)
	fibRun(n - 4) // a warm-up
	return fibRun(n)
}

func fib(n uint64) uint64 {
	if n < 2 {
		return n
	}
	one := make(chan uint64, 1)
	go func() { one <- fib(n - 1) }()
	two := fib(n - 2)
	return <-one + two
}

func fibRun(n uint64) outcome {
	value, forks := fibExpected(n)
	return root(func() outcome {
		stop := stopwatch()
		sum := fib(n)
		measured := stop()
		check(sum == value, "the sum")
		measured.ops = forks
		return measured
	})
}

// fibExpected is fib(n), and how many calls of it fork.
func fibExpected(n uint64) (value, forks uint64) {
	one, two, oneForks, twoForks := uint64(0), uint64(1), uint64(0), uint64(0)
	for range n {
		one, two = two, one+two
		oneForks, twoForks = twoForks, oneForks+twoForks+1
	}
	return one, oneForks
}

const nodeHashes, childrenOfParent, parentsOf10000 = 32, 8, 1244

func rootID(seed, i uint64) uint64 { return mix(seed<<32 + i) }

func childrenOf(hash uint64) uint64 {
	if hash%10000 < parentsOf10000 {
		return childrenOfParent
	}
	return 0
}

func node(g *gate, id uint64) {
	hash := work(id, nodeHashes)
	for child := range childrenOf(hash) {
		go node(g, hash+child)
	}
	g.pass()
}

// treeNodes is how many nodes there are, by a walk with a stack.
func treeNodes(roots, seed uint64) uint64 {
	nodes, stack := uint64(0), []uint64{}
	for i := range roots {
		stack = append(stack, rootID(seed, i))
		for len(stack) > 0 {
			hash := work(stack[len(stack)-1], nodeHashes)
			stack = stack[:len(stack)-1]
			nodes++
			for child := range childrenOf(hash) {
				stack = append(stack, hash+child)
			}
		}
	}
	return nodes
}

// unevenTree: each node hashes, and has eight children or none, as the hash says.
func unevenTree(run) outcome {
	roots, seed := argument("--roots", 4000), argument("--seed", 1)
	treeRun(roots/10, seed) // a warm-up
	return treeRun(roots, seed)
}

func treeRun(roots, seed uint64) outcome {
	nodes := treeNodes(roots, seed)
	measured := rounds(run{nodes, nodes}, nodes, func(g *gate) {
		for i := range roots {
			go node(g, rootID(seed, i))
		}
	})
	measured.ops = nodes
	return measured
}

// unbalancedProducer: the root spawns goroutines that hash; the other workers are to take theirs.
func unbalancedProducer(r run) outcome {
	hashes := argument("--work", 400)
	return rounds(r, r.batch, func(g *gate) {
		for i := range r.batch {
			go func() {
				check(work(i, hashes) != 0, "keeps the work from being left out")
				g.pass()
			}()
		}
	})
}
