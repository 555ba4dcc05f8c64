// What the benchmark is made of: workloads, and the memory loops they are measured against. Sees the public interface alone.
#pragma once
#include <sinter/sinter.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bench {

using Arrays = std::vector<sinter::Array>;

// A workload on inputs that exist.
struct Work {
  std::function<void()> regular, compiled;  // compute everything before they return
  std::function<std::string()> kernels;     // the compiled call's, as text
  std::function<std::string()> explain;     // after a call
  std::function<void()> products = {};      // its matrix products alone, where it is made of them
  std::function<void()> shapeless = {};     // the compiled call of a function that is traced for any sizes, where they are not its own
};

struct Row {
  const char* name;
  std::vector<sinter::Shape> inputs;  // float32, in [0.5, 1.5)
  std::int64_t written;               // elements that have to be written at least
  Work (*make)(Arrays inputs);
  int calls = 1;                          // for each measurement: many where a call takes no time
  std::int64_t parameters = 0;            // elements that it reads besides its inputs: of a model and its optimizer
  bool new_shapes = false;                // its first `calls` calls have a shape each, and are traced
  std::vector<std::string> figures = {};  // keys of further ones

  std::int64_t read() const;  // elements that have to be read at least
  std::int64_t bytes() const { return 4 * (read() + written); }
  // Reads more than nine tenths of what it moves: then a summing read is what memory gives at best.
  bool reads_only() const { return written * 10 < read(); }
};

// A figure that some rows have beside those that all have, measured in processes of its own: the median of them is told.
struct Figure {
  const char* key;    // in JSON lines and targets
  const char* words;  // in the table: a format of the number
  double (*measure)(const Row& row);
};
const Figure* find_figure(const std::string& key);  // null: there is none

std::span<const Row> rows();
const Row* find_row(const std::string& name);  // null: there is none
// The same numbers on every run, made without the library, so that a process's first call is the workload's.
Arrays make_inputs(const Row& row);

// Those with a model in them: models.cpp.
Work make_mlp_train(Arrays in);
Work make_block_fwd(Arrays in);
Work make_block_train(Arrays in);
Work make_decode(Arrays in);         // a cache that grows by what is appended
Work make_decode_places(Arrays in);  // a cache with places for all tokens from the start
constexpr int kDecodeTokens = 100;
constexpr std::int64_t kMlpParameters = 784 * 512 + 512 * 512 + 512 * 10 + 512 + 512 + 10;
constexpr std::int64_t kBlockParameters = 12 * 512 * 512 + 13 * 512;

// Answers bench/compare.py: a line of commands at a time from standard input.
int serve();

double now_ms();
inline double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v.empty() ? 0 : v[v.size() / 2];
}
template <class F>
double time_ms(F&& f) {
  double start = now_ms();
  f();
  return now_ms() - start;
}

// Two buffers on huge pages and loops over them by all threads: what memory gives at best.
class Memory {
 public:
  explicit Memory(std::int64_t bytes);  // moved by each loop: half read and half written, or all of it read
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void copy();              // ordinary stores
  void copy_nontemporal();  // stores that pass the caches by, for information
  void read();              // a sum
  /// The time in which the system hands out so many bytes, zeroed, to all threads, on huge pages as the library's large blocks are.
  static double fresh_ms(std::int64_t bytes);

 private:
  std::int64_t lines_;  // of 64 bytes, in each buffer
  float* from_;
  float* to_;
};

}  // namespace bench
