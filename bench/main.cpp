// sinter_bench: one JSON line a workload and number of threads, and a table last. Times are compared within one run: the copy, the
// compiled call and the regular call take turns, and medians are reported. Every measurement has a process of its own, since first
// calls, the number of threads and peak memory belong to a process.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "bench.h"

namespace bench {
namespace {

struct Options {
  bool json = false, quick = false, explain = false;
  std::string kernels;  // directory
  std::vector<std::string> only;
  std::vector<int> threads;
};

struct Result {  // milliseconds unless named otherwise
  double regular = 0, compiled = 0, copy = 0, nontemporal = 0, peak_mb = 0, regular_peak_mb = 0, products = 0, traced = 0, first = 0,
         cached_first = 0;
  std::vector<std::pair<const Figure*, double>> figures;
};

// ---- in a child process --------------------------------------------------------------------------------------------------------------

void measure_first(const Row& row) {
  Work work = row.make(make_inputs(row));
  std::printf("%.4f\n", time_ms(work.compiled));
}

void measure(const Row& row, double budget_ms) {
  Work work = row.make(make_inputs(row));
  Memory memory(row.bytes());
  auto copy = [&] { row.reads_only() ? memory.read() : memory.copy(); };
  double traced = 0;
  if (row.new_shapes) {
    traced = time_ms([&] {
               for (int i = 0; i < row.calls; ++i) work.compiled();
             }) /
             row.calls;
  }
  work.compiled();
  if (work.kernels().find(" interpreted (") != std::string::npos) {
    std::fprintf(stderr, "sinter_bench: the interpreter runs kernels of %s: there is no code generator for this processor\n", row.name);
    return;  // without numbers: the row fails
  }
  sinter::reset_peak_memory();
  work.compiled();
  double peak_mb = static_cast<double>(sinter::peak_memory()) / 1e6;
  sinter::reset_peak_memory();
  work.regular();
  double regular_peak_mb = static_cast<double>(sinter::peak_memory()) / 1e6;
  copy();

  auto calls = [&](const std::function<void()>& f) {
    return [&row, &f] {
      for (int i = 0; i < row.calls; ++i) f();
    };
  };
  std::vector<std::function<void()>> turns{copy, calls(work.compiled), calls(work.regular), [&] { memory.copy_nontemporal(); }};
  if (work.products) turns.push_back(work.products), work.products();
  std::vector<double> times[5];
  // Each round starts with another one, for what runs after a pause is not always the same. And each runs once before it is timed: it then
  // finds the caches as it leaves them itself. Behind a copy, it would wait until that one's last results are out of the caches (rows of
  // 50 MB: a fifth of their time), and a copy behind a loop that leaves nothing there would not.
  std::size_t round = 0;
  auto more = [&, start = now_ms()] {
    double ms = now_ms() - start;
    return round < 3 || (round < 8 && ms < 4 * budget_ms) || (round < 200 && ms < budget_ms);
  };
  for (; more(); ++round) {
    for (std::size_t i = 0; i < turns.size(); ++i) {
      std::size_t turn = (round * 3 + i) % turns.size();
      turns[turn]();
      times[turn].push_back(time_ms(turns[turn]));
    }
  }
  std::printf("%.6f %.6f %.6f %.6f %.1f %.1f %.6f %.6f\n", median(times[2]) / row.calls, median(times[1]) / row.calls, median(times[0]),
              median(times[3]), peak_mb, regular_peak_mb, median(times[4]), traced);
}

// ---- in the parent -------------------------------------------------------------------------------------------------------------------

// The numbers that this program prints when run again with `arguments`.
std::vector<double> run_child(const std::string& arguments, int threads, const std::string& cache_dir) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string command = "OMP_NUM_THREADS=" + std::to_string(threads) + " SINTER_CACHE_DIR='" + cache_dir + "' '" + self + "' " + arguments;
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<double> numbers;
  double v = 0;
  while (pipe && std::fscanf(pipe.get(), "%lf", &v) == 1) numbers.push_back(v);
  return numbers;
}

class CacheDir {
 public:
  CacheDir() { path_ = std::string(mkdtemp((std::filesystem::temp_directory_path() / "sinter_bench.XXXXXX").string().data())); }
  ~CacheDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheDir(const CacheDir&) = delete;
  CacheDir& operator=(const CacheDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::optional<Result> measure_row(const Row& row, int threads, const Options& options) {
  Result r;
  std::vector<double> first, cached;
  for (int i = 0; i < (options.quick ? 1 : 5); ++i) {
    CacheDir cache;
    for (std::vector<double>* times : {&first, &cached}) {
      std::vector<double> numbers = run_child(std::string("--first ") + row.name, threads, cache.path());
      if (numbers.size() == 1) times->push_back(numbers[0]);
    }
  }
  CacheDir cache;
  std::vector<double> numbers = run_child(std::string("--time ") + row.name + (options.quick ? " 300" : " 2500"), threads, cache.path());
  if (numbers.size() != 8 || first.empty() || cached.empty()) return std::nullopt;
  r.first = median(first), r.cached_first = median(cached);
  r.regular = numbers[0], r.compiled = numbers[1], r.copy = numbers[2], r.nontemporal = numbers[3], r.peak_mb = numbers[4],
  r.regular_peak_mb = numbers[5], r.products = numbers[6], r.traced = numbers[7];
  std::vector<std::string> keys{"cached_process_overhead_ms"};
  keys.insert(keys.end(), row.figures.begin(), row.figures.end());
  for (const std::string& key : keys) {
    std::vector<double> values;
    for (int i = 0; i < (options.quick ? 1 : 5); ++i) {
      const std::vector<double> value = run_child("--figure " + key + " " + row.name, threads, cache.path());
      if (value.size() == 1 && std::isfinite(value[0])) values.push_back(value[0]);
    }
    if (values.empty()) return std::nullopt;
    r.figures.emplace_back(find_figure(key), median(values));
  }
  return r;
}

// The copy tells nothing about a workload whose bytes fit into a cache.
bool memory_bound(const Row& row) { return row.bytes() > 4'000'000; }

template <class... A>
std::string text(const char* format, A... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

void print_json(const Row& row, int threads, const Result& r) {
  std::string roofline = memory_bound(row) ? text("%.3f", r.copy / r.compiled) : "null", more;
  if (r.products > 0) more += text(",\"products_ms\":%.4f", r.products);
  if (r.traced > 0) more += text(",\"traced_ms\":%.4f", r.traced);
  for (const auto& [figure, value] : r.figures) more += text(",\"%s\":%.3f", figure->key, value);
  std::printf(
      "{\"work\":\"%s\",\"device\":\"cpu\",\"threads\":%d,\"regular_ms\":%.4f,\"compiled_ms\":%.4f,\"speedup\":%.2f,\"roofline\":%s,"
      "\"first_call_ms\":%.2f,\"cached_process_first_call_ms\":%.2f,\"call_us\":%.3f,\"peak_mb\":%.1f,"
      "\"regular_peak_mb\":%.1f%s}\n",
      row.name, threads, r.regular, r.compiled, r.regular / r.compiled, roofline.c_str(), r.first, r.cached_first, r.compiled * 1e3,
      r.peak_mb, r.regular_peak_mb, more.c_str());
  std::fflush(stdout);
}

std::string table_line(const Row& row, int threads, const Result& r) {
  auto rate = [&](double ms) { return static_cast<double>(row.bytes()) / 1e6 / ms; };
  std::string memory = memory_bound(row)
                           ? text("%9.3f %7.1f %7.1f %7.1f", r.copy / r.compiled, rate(r.compiled), rate(r.copy), rate(r.nontemporal))
                           : std::string(33, ' ');
  std::string line = text("%-14s %7d %11.4f %11.4f %8.2f %s %10.1f %10.1f %8.1f", row.name, threads, r.regular, r.compiled,
                          r.regular / r.compiled, memory.c_str(), r.first, r.cached_first, r.peak_mb);
  if (r.products > 0) line += text("  products alone %.4f ms", r.products);
  if (r.traced > 0) line += text("  %.4f ms where lengths come first", r.traced);
  for (const auto& [figure, value] : r.figures) line += "  " + text(figure->words, value);
  return line;
}

void print_table(const std::vector<std::string>& lines) {
  std::printf("\n%-14s %7s %11s %11s %8s %9s %7s %7s %7s %10s %10s %8s\n", "work", "threads", "regular ms", "compiled ms", "speedup",
              "roofline", "GB/s", "copy", "nt copy", "first ms", "cached ms", "peak MB");
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  std::printf(
      "\nroofline: time of the copy of the least bytes the workload must move (a summing read where it writes almost nothing), divided by\n"
      "the compiled call's time. copy, nt copy: GB/s of that copy and of one with non-temporal stores. first: the first call in a new\n"
      "process without cached kernels; cached: in the next process with the same cache directory.\n"
      "No fast_math.\n");
}

// Two threads on two cores wait a scheduler's tick for each other when a third wants to run: such times say nothing.
void warn_if_busy() {
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5) {
    std::fprintf(stderr, "sinter_bench: other programs are running (load %.1f); expect ratios, and times above all, to be off\n", load);
  }
}

int run(const Options& options) {
  warn_if_busy();
  std::vector<std::string> table;
  int failed = 0;
  for (const Row& row : rows()) {
    if (!options.only.empty() && std::ranges::find(options.only, row.name) == options.only.end()) continue;
    for (int threads : options.threads) {
      std::optional<Result> r = measure_row(row, threads, options);
      if (!r) {
        std::fprintf(stderr, "sinter_bench: %s with %d threads failed\n", row.name, threads);
        ++failed;
        continue;
      }
      print_json(row, threads, *r);
      table.push_back(table_line(row, threads, *r));
    }
  }
  if (!options.json) print_table(table);
  return failed > 0;
}

// Instead of measuring: what compiled functions say of themselves, or their kernels as text, a file a row.
int describe(const Options& options) {
  for (const Row& row : rows()) {
    if (!options.only.empty() && std::ranges::find(options.only, row.name) == options.only.end()) continue;
    Work work = row.make(make_inputs(row));
    if (options.explain) {
      work.compiled();
      std::printf("== %s\n%s", row.name, work.explain().c_str());
    } else {
      std::ofstream(std::filesystem::path(options.kernels) / (std::string(row.name) + ".txt")) << work.kernels();
    }
  }
  return 0;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

int usage() {
  std::fprintf(stderr, "sinter_bench [--json] [--quick] [--only a,b] [--threads 1,2] [--explain | --kernels DIRECTORY]\nrows:");
  for (const Row& row : rows()) std::fprintf(stderr, " %s", row.name);
  std::fprintf(stderr, "\n");
  return 2;
}

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--first" && find_row(arguments[1])) return measure_first(*find_row(arguments[1])), 0;
  if (arguments.size() == 3 && arguments[0] == "--time" && find_row(arguments[1])) {
    return measure(*find_row(arguments[1]), std::atof(arguments[2].c_str())), 0;
  }
  if (arguments.size() == 3 && arguments[0] == "--figure" && find_figure(arguments[1]) && find_row(arguments[2])) {
    return std::printf("%.6f\n", find_figure(arguments[1])->measure(*find_row(arguments[2]))), 0;
  }
  if (arguments.size() == 1 && arguments[0] == "--serve") return serve();
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bool more = i + 1 < arguments.size();
    if (arguments[i] == "--json")
      options.json = true;
    else if (arguments[i] == "--quick")
      options.quick = true;
    else if (arguments[i] == "--explain")
      options.explain = true;
    else if (arguments[i] == "--kernels" && more)
      options.kernels = arguments[++i];
    else if (arguments[i] == "--only" && more)
      options.only = split(arguments[++i]);
    else if (arguments[i] == "--threads" && more) {
      for (const std::string& n : split(arguments[++i])) options.threads.push_back(std::atoi(n.c_str()));
    } else {
      return usage();
    }
  }
  for (const std::string& name : options.only) {
    if (!find_row(name)) return usage();
  }
  if (options.explain || !options.kernels.empty()) return describe(options);
  if (options.threads.empty()) {
    options.threads = {1};
    if (std::thread::hardware_concurrency() > 1) options.threads.push_back(2);
  }
  return run(options);
}

}  // namespace

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace bench

int main(int argc, char** argv) { return bench::main(argc, argv); }
