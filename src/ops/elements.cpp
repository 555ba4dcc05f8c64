#include "ops/elements.h"

#include <algorithm>
#include <vector>

#include "base/symbols.h"

namespace sinter::ops {
namespace {

constexpr std::size_t kChunk = 64;  // lanes of the machine for long operands

// Runs `f(machine, operands)` on chunks of elements.
template <class F>
void by_chunks(std::span<const std::span<const std::uint64_t>> operands, std::span<const Dtype> dtypes, std::span<std::uint64_t> result,
               F f) {
  const std::size_t chunk = std::min(kChunk, result.size());
  Lanes m(static_cast<int>(chunk));
  std::vector<std::uint64_t> padded(chunk);
  for (std::size_t at = 0; at < result.size(); at += chunk) {
    const std::size_t n = std::min(chunk, result.size() - at);
    const Lanes::Mark mark = m.mark();
    Wide in[3];
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].size() == 1) {
        in[i] = wide_of(m, dtypes[i], operands[i]);
      } else if (n == chunk) {
        in[i] = wide_of(m, dtypes[i], operands[i].subspan(at, n));
      } else {  // the last chunk: lanes beyond the end repeat the last element
        for (std::size_t l = 0; l < chunk; ++l) padded[l] = operands[i][at + std::min(l, n - 1)];
        in[i] = wide_of(m, dtypes[i], padded);
      }
    }
    const Wide out = f(std::span<const Wide>(in, operands.size()));
    const Words words = words_of(m, out);
    for (std::size_t l = 0; l < n; ++l) result[at + l] = words[l];
    m.release(mark);
  }
}

}  // namespace

Wide wide_of(Lanes& m, Dtype t, std::span<const std::uint64_t> words) {
  if (words.size() == 1) return wide_constant(m, t, words[0]);
  if (!is_complex(t)) return load_form(m.vector(storage_dtype(t), words), t);
  std::vector<std::uint64_t> high(words.begin(), words.end());
  for (std::uint64_t& w : high) w >>= 32;
  const Val re = m.vector(Dtype::float32, words);
  return {t, re, m.vector(Dtype::float32, high)};
}

Words words_of(Lanes& m, const Wide& w) {
  if (is_complex(w.dtype)) return {m.words(w.re), m.words(w.im)};
  return {m.words(store_form(w)), {}};
}

void evaluate(Op op, Dtype compute, std::span<const std::span<const std::uint64_t>> operands, std::span<std::uint64_t> result) {
  if (result.empty()) return;
  const Dtype dtypes[3] = {info(op).rule == Rule::Where ? Dtype::bool_ : compute, compute, compute};
  by_chunks(operands, dtypes, result, [&](std::span<const Wide> in) { return expand(op, compute, in); });
}

void convert_elements(Dtype from, Dtype to, std::span<const std::uint64_t> words, std::span<std::uint64_t> result) {
  if (result.empty()) return;
  by_chunks({&words, 1}, {&from, 1}, result, [&](std::span<const Wide> in) { return cast(in[0], to); });
}

Dim bits_of_size(const Dim& n, Dtype t) {
  const auto bits = [](std::span<const std::int64_t> in) {
    const auto word = static_cast<std::uint64_t>(in[0]);
    std::uint64_t result = 0;
    convert_elements(Dtype::int64, static_cast<Dtype>(in[1]), {&word, 1}, {&result, 1});
    return static_cast<std::int64_t>(result);
  };
  return base::apply("bits", bits, {n, Dim(static_cast<std::int64_t>(t))}, base::kNoBound, 1);
}

}  // namespace sinter::ops
