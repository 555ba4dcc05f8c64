#include "table/table.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "backends/codegen.h"
#include "ops/elements.h"

namespace sinter::tests {
namespace {

std::atomic<int> other_levels{0};

// Prints at the end what the program built.
class Count : public testing::Environment {
  void SetUp() override { start_ = std::chrono::steady_clock::now(); }
  void TearDown() override {
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
    const auto kernels = static_cast<long long>(engine::kernel_count());  // what the store holds: 4096 at most
    std::printf("%lld%s kernels, %d of them at another level too, %.0f ms\n", kernels, kernels == 4096 ? " or more" : "",
                other_levels.load(), ms);
  }
  std::chrono::steady_clock::time_point start_;
};
[[maybe_unused]] const testing::Environment* const kCount = testing::AddGlobalTestEnvironment(new Count);

using Call = Array (*)(const std::vector<Array>&);
constexpr Call kCalls[] = {
#define OP1(Name, function, ...) [](const std::vector<Array>& a) { return sinter::function(a[0]); },
#define OP2(Name, function, ...) [](const std::vector<Array>& a) { return sinter::function(a[0], a[1]); },
#define OP3(Name, function, ...) [](const std::vector<Array>& a) { return sinter::function(a[0], a[1], a[2]); },
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
};

// Kernels of a plan compiled at the level that they did not have.
engine::Plan at_other_level(engine::Plan plan) {
  for (const engine::Step& step : plan.steps()) {
    const auto* launch = std::get_if<engine::Launch>(&step);
    if (!launch || launch->kernel->interpreted()) continue;
    const kernel::Kernel& k = launch->kernel->kernel();
    backends::CodegenOptions options;
    options.level = k.body.size() > 400 ? 2 : 0;  // long kernels are made at level 0 as it is
    const auto code = std::make_shared<const runtime::MappedImages>(backends::codegen().compile(k, backends::host_target(), options));
    const_cast<engine::Launch*>(launch)->kernel = std::make_shared<const engine::Executable>(k, code, 0);
    ++other_levels;
  }
  return plan;
}

}  // namespace

bool test_all() { return std::getenv("SINTER_TEST_ALL") != nullptr; }

Array call(Op op, const std::vector<Array>& operands) { return kCalls[static_cast<std::size_t>(op)](operands); }

std::vector<Op> elementwise_ops(int operands, Dtype t) {
  std::vector<Op> result;
  for (std::size_t i = 0; i < ops::all_ops().size(); ++i) {
    Op op = static_cast<Op>(i);
    if (!ops::is_elementwise(op) || ops::info(op).operands != operands) continue;
    std::vector<Dtype> in;
    for (int k = 0; k < operands; ++k) in.push_back(operand_dtype(op, k, t));
    try {
      ops::elementwise_type(op, in);
      result.push_back(op);
    } catch (const DtypeError&) {
    }
  }
  return result;
}

const char* name(Form f) {
  static constexpr const char* kNames[] = {"contiguous", "stepped",        "reversed", "transposed",
                                           "broadcast",  "scalar_operand", "zero_d",   "empty"};
  return kNames[static_cast<int>(f)];
}

Input operand(Dtype t, const Shape& shape, const graph::Strides& strides, std::uint32_t seed, double low, double high, bool special) {
  static constexpr double kSpecial[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e30, 1e-40, -3e9, 65519, 6e-8};
  const bool empty = shape.product() == 0;
  std::int64_t first = 0, last = 0;
  for (std::size_t d = 0; d < shape.size() && !empty; ++d) (strides[d] < 0 ? first : last) += strides[d] * (shape[d] - 1);
  const auto count = static_cast<std::size_t>(empty ? 0 : last - first + 1);
  std::mt19937 random(seed * 31 + static_cast<std::uint32_t>(t));
  std::vector<std::uint64_t> doubles(count), words(count), high_words(count);
  const auto fill = [&](std::vector<std::uint64_t>& out, Dtype as) {
    for (std::uint64_t& w : doubles) {
      double v = low + (high - low) * random() / 4294967296.0;
      if (special && random() % 8 == 0) v = kSpecial[random() % std::size(kSpecial)];
      w = std::bit_cast<std::uint64_t>(v);
    }
    ops::convert_elements(Dtype::float64, as, doubles, out);
  };
  fill(words, is_complex(t) ? Dtype::float32 : t);
  if (is_complex(t)) {
    fill(high_words, Dtype::float32);
    for (std::size_t i = 0; i < count; ++i) words[i] |= high_words[i] << 32;
  }
  if (t == Dtype::bool_)
    for (std::uint64_t& w : words) w = random() & 1;
  if (is_integer(t) && special)
    for (std::uint64_t& w : words)
      if (random() % 4 == 0) w = (random() | std::uint64_t{random()} << 32) & (~std::uint64_t{0} >> (64 - 8 * size_of(t)));
  const auto size = static_cast<std::size_t>(size_of(t));
  runtime::BufferRef buffer = runtime::allocate(count * size);
  char* data = static_cast<char*>(buffer.data());
  for (std::size_t i = 0; i < count; ++i) std::memcpy(data + i * size, &words[i], size);
  Tensor tensor{t, shape, {}};
  tensor.bytes.resize(static_cast<std::size_t>(elements(shape)) * size);
  const graph::Strides plain = graph::row_major(shape);
  for (std::int64_t i = 0; i < elements(shape); ++i) {
    std::int64_t at = -first, rest = i;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      at += rest / plain[d] * strides[d];
      rest %= plain[d];
    }
    std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(i) * size, data + static_cast<std::size_t>(at) * size, size);
  }
  return {engine::make_ready(std::move(buffer), {-first, strides}, t, shape), std::move(tensor)};
}

Input operand(Form f, int length, int number, Dtype t, std::uint32_t seed, double low, double high) {
  Shape shape{length};
  graph::Strides strides{1};
  switch (f) {
    case Form::contiguous: break;
    case Form::stepped: strides = {2 + number}; break;
    case Form::reversed: strides = {-1 - number}; break;
    case Form::transposed:
      shape = {3, length};
      strides = number == 1 ? graph::Strides{length, 1} : graph::Strides{1, 3};
      break;
    case Form::broadcast:
      shape = {3, length};
      strides = number == 0 ? graph::Strides{0, 1} : number == 1 ? graph::Strides{1, 0} : graph::Strides{length, 1};
      break;
    case Form::scalar_operand:
      if (number > 0) shape = {}, strides = {};
      break;
    case Form::zero_d: shape = {}, strides = {}; break;
    case Form::empty: shape = {0, 3}, strides = {3, 1}; break;
  }
  return operand(t, shape, strides, seed * 7 + static_cast<std::uint32_t>(number), low, high, true);
}

std::string disagreement(const Graph& g, std::span<const Input> inputs, const Ways& ways, std::vector<Tensor> regular) {
  std::vector<Array> arrays;
  std::vector<Tensor> tensors;
  for (const Input& in : inputs) {
    arrays.push_back(in.array);
    tensors.push_back(in.tensor);
  }
  const auto differ = [](const char* way, const std::string& d) { return d.empty() ? d : str(way, ": ", d); };
  if (regular.empty()) regular = run_regular(g, arrays);
  std::vector<Tensor> reference = graph::interpret(g, tensors);
  for (std::size_t i = 0; i < ways.rounded.size(); ++i)
    if (ways.rounded[i]) reference[i] = regular[i];
  if (std::string d = differ("regular and reference", graph::difference(regular, reference, ways.tolerance)); !d.empty()) return d;
  engine::Plan plan = plan_of(g, arrays);
  if (std::string d = differ("compiled and regular", graph::difference(read(plan.run(arrays, {}, {})), regular)); !d.empty()) return d;
  if (std::string d = differ("interpreted and regular", graph::difference(read(plan.run(arrays, {}, {}, true)), regular)); !d.empty())
    return d;
  if (ways.unfused) {
    if (std::string d =
            differ("unfused and regular", graph::difference(read(plan_of(g, arrays, false, false).run(arrays, {}, {})), regular));
        !d.empty())
      return d;
  }
  if (ways.levels) return differ("another level and regular", graph::difference(read(at_other_level(plan).run(arrays, {}, {})), regular));
  return "";
}

void run_jobs(std::vector<std::function<std::string()>> jobs) {
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::vector<std::string> differences;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      std::string d;
      try {
        d = jobs[i]();
      } catch (const std::exception& e) {
        d = str("job ", i, " threw ", e.what());
      }
      if (d.empty()) continue;
      std::lock_guard guard(lock);
      differences.push_back(std::move(d));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < std::min<std::size_t>(differences.size(), 20); ++i) ADD_FAILURE() << differences[i];
  if (differences.size() > 20) ADD_FAILURE() << "and " << differences.size() - 20 << " more";
}

}  // namespace sinter::tests
