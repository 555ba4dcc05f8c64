// What the benchmark is made of: workloads, and the memory loops they are measured against. Sees the public interface alone.
#pragma once
#include <sinter/sinter.h>

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
  std::function<void()> products = {};      // its matrix products alone, where it is made of them
};

struct Row {
  const char* name;
  std::vector<sinter::Shape> inputs;  // float32, in [0.5, 1.5)
  std::int64_t written;               // elements that have to be written at least
  Work (*make)(Arrays inputs);
  int calls = 1;  // for each measurement: many where a call takes no time

  std::int64_t read() const;  // elements that have to be read at least
  std::int64_t bytes() const { return 4 * (read() + written); }
};

std::span<const Row> rows();
// The same numbers on every run, made without the library, so that a process's first call is the workload's.
Arrays make_inputs(const Row& row);

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

 private:
  std::int64_t lines_;  // of 64 bytes, in each buffer
  float* from_;
  float* to_;
};

}  // namespace bench
