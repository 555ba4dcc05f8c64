// Further figures of some rows.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "bench.h"

namespace bench {
namespace {

constexpr int kRounds = 9;

// So many calls that they take `ms`.
std::int64_t calls_in(double ms, const Row& row, const std::function<void()>& call) {
  call();
  const double each = time_ms([&] {
                        for (int i = 0; i < row.calls; ++i) call();
                      }) /
                      row.calls;
  return static_cast<std::int64_t>(ms / each) + 1;
}

// How many times the calls of one thread two threads make in the same time, of one compiled function, each on arrays of its own.
double callers_speedup(const Row& row) {
  constexpr int kCallers = 2;
  std::vector<Work> works;  // they share what is compiled
  for (int i = 0; i < kCallers; ++i) works.push_back(row.make(make_inputs(row)));
  for (Work& w : works) w.compiled();
  const std::int64_t calls = calls_in(20, row, works[0].compiled);

  // The time in which each of `callers` threads makes the calls, from when all of them run.
  auto time = [&](int callers) {
    std::atomic<int> ready = 0;
    std::vector<double> times(static_cast<std::size_t>(callers));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < times.size(); ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) works[t].compiled();
        for (++ready; ready < callers;) {
        }
        times[t] = time_ms([&] {
          for (std::int64_t i = 0; i < calls; ++i) works[t].compiled();
        });
      });
    for (std::thread& t : threads) t.join();
    return *std::ranges::max_element(times);
  };
  std::vector<double> ratios;
  for (int i = 0; i < kRounds; ++i) {
    const double alone = time(1);
    ratios.push_back(kCallers * alone / time(kCallers));
  }
  return median(ratios);
}

// The time of a call whose entry was traced for other sizes, as a multiple of that of an entry traced for its own.
double shapeless_ratio(const Row& row) {
  Row half = row;
  for (sinter::Shape& shape : half.inputs)
    for (sinter::Dim& n : shape) n = (n + 1) / 2;
  half.make(make_inputs(half)).shapeless();
  Work work = row.make(make_inputs(row));
  const std::int64_t calls = calls_in(row.calls > 1 ? 5 : 0, row, work.compiled);
  calls_in(0, row, work.shapeless);
  const std::array<const std::function<void()>*, 2> ways{&work.compiled, &work.shapeless};
  std::vector<double> times[2];
  for (std::size_t round = 0; round < 51; ++round)
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t way = (round + i) % 2;  // what comes second finds other caches
      times[way].push_back(time_ms([&] {
        for (std::int64_t k = 0; k < calls; ++k) (*ways[way])();
      }));
    }
  return median(times[1]) / median(times[0]);
}

// What the library holds of the system's memory in arrays.
std::int64_t held_memory() { return static_cast<std::int64_t>(sinter::active_memory() + sinter::cache_memory()); }

// A new thread may begin on the core of the one that started it, and wait some milliseconds until the system moves it.
void start_threads() {
#pragma omp parallel
  for (const double start = now_ms(); now_ms() - start < 20;) {
  }
}

// What the first call of a process takes beyond what no library could avoid, its kernels being on disk: beyond a later call, and beyond
// the time in which the system hands out the memory that the call newly took. Threads have been started. Where a row knows its library
// calls, these have run once before, by themselves, so that their library is loaded and has made its primitives. Fails if the code
// generator was loaded.
double cached_process_overhead_ms(const Row& row) {
  Work work = row.make(make_inputs(row));
  start_threads();
  Memory::fresh_ms(row.bytes());  // a virtual machine may have to ask its host for pages when they are first used
  if (work.products) work.products();
  const std::int64_t held = held_memory();
  const double first = time_ms(work.compiled);
  const std::int64_t fresh = held_memory() - held;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("sinter_codegen") != std::string::npos) {
      std::fprintf(stderr, "sinter_bench: a first call of %s with kernels on disk has loaded the code generator\n", row.name);
      return NAN;
    }
  for (int i = 1; row.new_shapes && i < row.calls; ++i) work.compiled();  // after these, shapes have been met before
  double later = first;
  for (int i = 0; i < 3; ++i) later = std::min(later, time_ms(work.compiled));
  sinter::set_cache_limit(0);  // so that the system has the very memory of the call to hand out
  return first - later - Memory::fresh_ms(fresh);
}

constexpr Figure kFigures[] = {
    {"callers_speedup", "two callers make %.2f times the calls of one", callers_speedup},
    {"shapeless_ratio", "shapeless takes %.3f times as long", shapeless_ratio},
    {"cached_process_overhead_ms", "cached first call beyond a later one and fresh memory: %.2f ms", cached_process_overhead_ms},
};

}  // namespace

const Figure* find_figure(const std::string& key) {
  for (const Figure& f : kFigures)
    if (key == f.key) return &f;
  return nullptr;
}

}  // namespace bench
