// The pool's sleep protocol under threads: no job is lost, none happens twice. A plain program, so that
// it runs under every sanitizer. With NORIA_LONG=1 thirty times as many rounds, and 100,000 of the first.
// The seed is printed; NORIA_SEED repeats it.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/live.hpp"
#include "blocking/pool.hpp"
#include "support/check.hpp"

using namespace noria;
using namespace noria::blocking;

namespace {

int rounds(int few) { return test::rounds(few, few * 30); }

Pool* make(const PoolOptions& options) {
  Pool* pool = nullptr;
  NORIA_ASSERT(Pool::create(options, &pool) == 0, "test: a pool");
  return pool;
}

// Of a closed pool: a second close() would pick up what the first forgot.
void end_closed(Pool* pool) {
  NORIA_ASSERT(pool->wait_idle(kNever), "test: a closed pool becomes idle");
  pool->release();
}

void end(Pool* pool) {
  pool->close();
  end_closed(pool);
}

struct Flagged : Job {
  std::atomic<int> ran{0};
  Flagged() {
    run = [](Job* job) {
      auto* self = static_cast<Flagged*>(job);
      self->ran.store(1);
      self->ran.notify_all();
    };
    discard = [](Job*) { NORIA_ASSERT(false, "test: this job must run"); };
  }
};

// The case lost-blocking: a fresh pool, one job, each time. A lost job hangs until the alarm.
void lost_blocking(int count) {
  for (int i = 0; i < count; ++i) {
    Pool* pool = make({});
    Flagged job;
    NORIA_ASSERT(pool->submit(job, PoolClass::kUser) == 0, "test: submitted");
    job.ran.wait(0);
    end(pool);
  }
}

// Threads end as fast as jobs come: the last look of a thread that leaves against a submission.
void leaving_threads(int count, unsigned seed) {
  PoolOptions options;
  options.keep_alive_ns = 0;
  for (auto& max : options.max_threads) max = 2;
  Pool* pool = make(options);
  auto submit = [&](unsigned own_seed) {
    std::mt19937 random(own_seed);
    for (int i = 0; i < count; ++i) {
      Flagged job;
      NORIA_ASSERT(pool->submit(job, PoolClass::kNames) == 0, "test: submitted");
      job.ran.wait(0);
      for (unsigned n = random() % 300; n > 0; --n) cpu_pause();
    }
  };
  std::thread a(submit, seed), b(submit, seed + 1);
  a.join();
  b.join();
  end(pool);
}

// Room for a job whose first words, which push() writes, lie on a page that is not there yet: the fault
// holds the submitter up for about a microsecond between its first look at the crew and the push.
class SlowRoom {
 public:
  SlowRoom() : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    void* pages = ::mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NORIA_ASSERT(pages != MAP_FAILED, "test: two pages");
    pages_ = static_cast<char*>(pages);
  }
  ~SlowRoom() { ::munmap(pages_, 2 * page_); }
  SlowRoom(const SlowRoom&) = delete;
  SlowRoom& operator=(const SlowRoom&) = delete;

  template <typename T, typename... Args>
  T* make(Args... args) {
    static_assert(offsetof(Job, run) == 16);
    T* job = new (pages_ + page_ - offsetof(Job, run)) T(args...);
    NORIA_ASSERT(::madvise(pages_, page_, MADV_DONTNEED) == 0, "test: a page dropped");  // next, prev: null
    return job;
  }

 private:
  std::size_t page_;
  char* pages_;
};

// One submitter, whose next job comes about when the thread that ran the last one goes to sleep: nobody
// else would find a job that was missed then.
void parking(int count, unsigned seed) {
  std::mt19937 random(seed);
  Pool* pool = make({});
  SlowRoom room;
  for (int i = 0; i < count; ++i) {
    auto* job = room.make<Flagged>();
    NORIA_ASSERT(pool->submit(*job, PoolClass::kUser) == 0, "test: submitted");
    while (job->ran.load() == 0) cpu_pause();
    for (unsigned n = random() % 400; n > 0; --n) cpu_pause();
  }
  end(pool);
}

struct Counters {
  std::atomic<int> ran{0}, discarded{0}, cancelled{0}, refused{0};
};

struct Counted : Job {
  Counters* counters;
  unsigned work;
  Counted(Counters* c, unsigned w) : counters(c), work(w) {
    run = [](Job* job) {
      auto* self = static_cast<Counted*>(job);
      if (self->work == 0) std::this_thread::yield();
      for (unsigned n = self->work; n > 0; --n) cpu_pause();
      self->counters->ran.fetch_add(1);
    };
    discard = [](Job* job) { static_cast<Counted*>(job)->counters->discarded.fetch_add(1); };
  }
};

// Submitters, cancels, threads of their own, and a close at any time: exactly one end for each job.
void everything_at_once(unsigned seed) {
  std::mt19937 random(seed);
  PoolOptions options;
  options.keep_alive_ns = random() % 2 == 0 ? 0 : 50'000;
  for (auto& max : options.max_threads) max = 1 + random() % 4;
  for (auto& limit : options.queue_limit) limit = random() % 2 == 0 ? kNoLimit : 1 + random() % 30;
  Pool* pool = make(options);
  Counters counters;
  std::atomic<int> calls{0}, called{0};
  constexpr int kSubmitters = 3;
  constexpr int kJobs = 300;
  std::vector<std::unique_ptr<Counted>> jobs[kSubmitters];
  auto submit = [&](int index, unsigned own_seed) {
    std::mt19937 own(own_seed);
    for (int i = 0; i < kJobs; ++i) {
      jobs[index].push_back(std::make_unique<Counted>(&counters, own() % 3 * (own() % 400)));
      Counted& job = *jobs[index].back();
      std::int32_t error = pool->submit(job, static_cast<PoolClass>(own() % 3));
      NORIA_ASSERT(error == 0 || error == -EAGAIN || error == -ESHUTDOWN, "test: submit's answers");
      if (error != 0) {
        counters.refused.fetch_add(1);
      } else if (own() % 4 == 0 && pool->cancel(job)) {
        counters.cancelled.fetch_add(1);
      }
      if (own() % 50 == 0 &&
          pool->run_thread([](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); }, &called) == 0) {
        calls.fetch_add(1);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kSubmitters; ++i) threads.emplace_back(submit, i, static_cast<unsigned>(random()));
  bool early = random() % 2 == 0;
  if (early) {
    for (unsigned n = random() % 20000; n > 0; --n) cpu_pause();
    pool->close();
  }
  for (auto& thread : threads) thread.join();
  if (!early) pool->close();
  end_closed(pool);
  int sum = counters.ran + counters.discarded + counters.cancelled + counters.refused;
  NORIA_ASSERT(sum == kSubmitters * kJobs, "test: each job ends once");
  NORIA_ASSERT(calls == called, "test: each thread of its own ran");
}

// A close while a job is on its way: what slips in is discarded, not forgotten.
void close_against_submit(unsigned seed) {
  std::mt19937 random(seed);
  Pool* pool = make({});
  Counters counters;
  SlowRoom rooms[3];
  Counted* jobs[3];
  for (int i = 0; i < 3; ++i) jobs[i] = rooms[i].make<Counted>(&counters, 1u);
  std::atomic<bool> started{false};
  int accepted = 0;
  std::thread submitter([&] {
    for (auto* job : jobs) {
      if (pool->submit(*job, PoolClass::kUser) != 0) break;
      ++accepted;
      started.store(true);
    }
  });
  while (!started.load()) cpu_pause();
  for (unsigned n = random() % 60; n > 0; --n) cpu_pause();
  pool->close();
  submitter.join();
  end_closed(pool);
  NORIA_ASSERT(counters.ran + counters.discarded == accepted, "test: each accepted job ends once");
}

// Each job waits for one that is submitted after it, while many short ones say that all is well.
void dependent_jobs(int count) {
  PoolOptions options;
  Pool* pool = make(options);
  Counters counters;
  std::vector<std::unique_ptr<Counted>> noise;
  for (int i = 0; i < count; ++i) {
    for (int n = 0; n < 50; ++n) {
      noise.push_back(std::make_unique<Counted>(&counters, 1));
      NORIA_ASSERT(pool->submit(*noise.back(), PoolClass::kFiles) == 0, "test: submitted");
    }
    struct Waits : Flagged {
      Flagged* on;
    } waits;
    Flagged second;
    waits.on = &second;
    waits.run = [](Job* job) {
      auto* self = static_cast<Waits*>(job);
      self->on->ran.wait(0);
      self->ran.store(1);
      self->ran.notify_all();
    };
    NORIA_ASSERT(pool->submit(waits, PoolClass::kFiles) == 0, "test: submitted");
    NORIA_ASSERT(pool->submit(second, PoolClass::kFiles) == 0, "test: submitted");
    waits.ran.wait(0);
  }
  end(pool);
}

}  // namespace

int main() {
  ::alarm(test::long_form() ? 1500 : 110);
  const char* given = std::getenv("NORIA_SEED");
  unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::fflush(stdout);
  lost_blocking(test::rounds(2000, 100000));
  leaving_threads(rounds(1000), seed);
  parking(rounds(30000), seed);
  for (int i = 0; i < rounds(1000); ++i) close_against_submit(seed + static_cast<unsigned>(i));
  for (int i = 0; i < rounds(60); ++i) everything_at_once(seed + static_cast<unsigned>(i));
  dependent_jobs(rounds(100));
  std::int64_t left = -1;
  for (int i = 0; i < 1000000 && left != 0; ++i) {  // the last threads are on their way out
    left = live_sum()[static_cast<std::size_t>(Live::kAllocations)];
    if (left != 0) std::this_thread::yield();
  }
  NORIA_ASSERT(left == 0, "test: all memory went back (P11)");
  return 0;
}
