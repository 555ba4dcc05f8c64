#include "graph/interpret.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "graph/interpret_parts.h"
#include "ops/cumulative.h"
#include "ops/infer.h"

namespace sinter::graph {
namespace {

using namespace interpreter;
using ops::Op;

class Interpreter {
 public:
  Interpreter(const Graph& g, std::span<const Tensor> inputs) : g_(g), inputs_(inputs), values_(g.size()) {}

  std::vector<Tensor> run() {
    std::vector<int> left = count_uses(g_);
    for (Id id = 0; id < g_.size(); ++id) {
      if (left[id] == 0) continue;
      values_[id] = {&g_[id].type, Words(count_of(g_[id].type.shape)), {}};
      node_ = &g_[id];
      out_ = &values_[id].words;
      evaluate();
      for (Id in : node_->in) {
        if (--left[in] == 0) values_[in].words = {}, values_[in].results = {};
      }
    }
    std::vector<Tensor> results;
    for (Id id : g_.outputs()) results.push_back(from_words(g_[id].type.dtype, g_[id].type.shape, values_[id].words));
    return results;
  }

 private:
  const Value& in(std::size_t i) const { return values_[node_->in[i]]; }
  const Shape& shape() const { return node_->type.shape; }
  Dtype dtype() const { return node_->type.dtype; }
  std::int64_t attr(std::size_t i) const { return node_->attrs[i]; }

  void evaluate() {
    if (ops::is_elementwise(node_->op)) return elementwise();
    const std::size_t n = shape().size();
    if (ops::has_bodies(node_->op)) return bodies();
    switch (node_->op) {
      case Op::Get: *out_ = to_words(in(0).results[static_cast<std::size_t>(attr(0))]); return;
      case Op::Barrier: *out_ = in(0).words; return;
      case Op::Input: return input();
      case Op::Constant:
        for (std::size_t i = 0; i < out_->size(); ++i) (*out_)[i] = static_cast<Word>(attr(node_->attrs.size() == 1 ? 0 : i));
        return;
      case Op::Arange: return arange();
      case Op::RandomBits: return random_bits();
      case Op::Cast: return ops::convert_elements(in(0).type->dtype, dtype(), in(0).words, *out_);
      case Op::Copy:
        for (std::size_t i = 0; i < out_->size(); ++i) (*out_)[i] = in(0).words[in(0).type->shape.empty() ? 0 : i];
        return;
      case Op::Reshape: *out_ = in(0).words; return;
      case Op::Transpose:
        return gather([&](const Index& i, Index& from) {
          for (std::size_t a = 0; a < n; ++a) from[static_cast<std::size_t>(attr(a))] = i[a];
        });
      case Op::Broadcast:
        return gather([&](const Index& i, Index& from) {
          for (std::size_t a = 0; a < from.size(); ++a) from[a] = in(0).type->shape[a] == 1 ? 0 : i[n - from.size() + a];
        });
      case Op::Slice:
        return gather([&](const Index& i, Index& from) {
          for (std::size_t a = 0; a < n; ++a) from[a] = attr(a) + i[a] * attr(2 * n + a);
        });
      case Op::AsStrided:
        for_each_index(shape(), [&](std::size_t at, const Index& i) {
          std::int64_t from = attr(2 * n);
          for (std::size_t a = 0; a < n; ++a) from += i[a] * attr(n + a);
          (*out_)[at] = in(0).words[static_cast<std::size_t>(from)];
        });
        return;
      case Op::Concatenate: return concatenate();
      case Op::Pad: return pad();
      case Op::Take: return take();
      case Op::TakeAlong: return take_along();
      case Op::ScatterAdd:
      case Op::PutAlong: return scatter();
      case Op::Matmul: *out_ = matmul(node_->type, in(0), in(1), nullptr); return;
      case Op::Solve: *out_ = solve(node_->type, in(0), in(1)); return;
      case Op::ArgSort: return argsort();
      case Op::Conv:
      case Op::ConvInput:
      case Op::ConvWeight: *out_ = convolution(*node_, in(0), in(1)); return;
      case Op::AddMM: *out_ = matmul(node_->type, in(1), in(2), &in(0)); return;
      default: return ops::info(node_->op).kind == ops::OpKind::Cumulative ? cumulative() : reduce();
    }
  }

  void elementwise() {
    std::span<const Word> words[3];
    for (std::size_t i = 0; i < node_->in.size(); ++i) words[i] = in(i).words;
    ops::evaluate(node_->op, in(node_->in.size() - 1).type->dtype, {words, node_->in.size()}, *out_);
  }

  void input() {
    const auto slot = static_cast<std::size_t>(attr(0));
    check(slot < inputs_.size() && inputs_[slot].dtype == dtype() && inputs_[slot].shape == shape(),
          "interpret: an input has not the type of its slot");
    *out_ = to_words(inputs_[slot]);
  }

  // start + i * step, with i converted to the dtype and each operation rounded.
  void arange() {
    Words i(out_->size());
    for_each_index(shape(),
                   [&](std::size_t at, const Index& index) { i[at] = static_cast<Word>(index[static_cast<std::size_t>(attr(0))]); });
    i = converted(i, Dtype::int64, dtype());
    const std::span<const Word> product[] = {i, in(1).words}, sum[] = {in(0).words, i};
    ops::evaluate(Op::Multiply, dtype(), product, i);
    ops::evaluate(Op::Add, dtype(), sum, i);
    *out_ = i;
  }

  // Threefry 2x32 (Salmon et al., 2011), 20 rounds.
  static std::pair<std::uint32_t, std::uint32_t> threefry(std::uint32_t k0, std::uint32_t k1, std::uint32_t x0, std::uint32_t x1) {
    static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const std::uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1bd11bda};
    x0 += keys[0];
    x1 += keys[1];
    for (std::uint32_t round = 0; round < 5; ++round) {
      for (int r : kRotations[round % 2]) {
        x0 += x1;
        x1 = std::rotl(x1, r) ^ x0;
      }
      x0 += keys[(round + 1) % 3];
      x1 += keys[(round + 2) % 3] + round + 1;
    }
    return {x0, x1};
  }

  // The bits of each key, one block after the other. The words of a block are numbered 0, 1, ...; the counter of word i of the first half
  // is (i, i + half), where half rounds up, and its second result is word i + half. With an odd number of words the last counter is (half -
  // 1, 0).
  void random_bits() {
    const std::size_t keys = in(0).words.size() / 2, size = keys == 0 ? 0 : out_->size() / keys;
    for (std::size_t k = 0; k < keys; ++k) random_block(in(0).words[2 * k], in(0).words[2 * k + 1], {out_->data() + k * size, size});
  }
  void random_block(Word key0, Word key1, std::span<Word> result) const {
    const auto width = static_cast<std::size_t>(attr(0));
    const std::size_t words = (result.size() * width + 3) / 4, half = (words + 1) / 2;
    std::vector<std::uint32_t> block(2 * half);
    for (std::size_t i = 0; i < half; ++i) {
      const std::size_t second = i + half < words ? i + half : 0;
      const auto bits = threefry(static_cast<std::uint32_t>(key0), static_cast<std::uint32_t>(key1), static_cast<std::uint32_t>(i),
                                 static_cast<std::uint32_t>(second));
      block[i] = bits.first;
      block[i + half] = bits.second;
    }
    for (std::size_t i = 0; i < result.size(); ++i)
      std::memcpy(&result[i], reinterpret_cast<const std::byte*>(block.data()) + i * width, width);
  }

  // Element i of the result is the element of operand 0 at the index that f computes.
  template <class F>
  void gather(F f) {
    const Value& x = in(0);
    Index from(x.type->shape.size());
    for_each_index(shape(), [&](std::size_t at, const Index& i) {
      f(i, from);
      (*out_)[at] = x.words[offset_of(x.type->shape, from)];
    });
  }

  void concatenate() {
    const auto axis = static_cast<std::size_t>(attr(0));
    std::int64_t start = 0;
    for (std::size_t k = 0; k < node_->in.size(); ++k) {
      const Value& x = in(k);
      for_each_index(x.type->shape, [&](std::size_t at, Index i) {
        i[axis] += start;
        (*out_)[offset_of(shape(), i)] = x.words[at];
      });
      start += x.type->shape[axis];
    }
  }

  void pad() {
    if (in(1).type->shape.empty())
      std::fill(out_->begin(), out_->end(), in(1).words[0]);
    else
      std::copy(in(1).words.begin(), in(1).words.end(), out_->begin());
    for_each_index(in(0).type->shape, [&](std::size_t at, Index i) {
      for (std::size_t a = 0; a < i.size(); ++a) i[a] += attr(a);
      (*out_)[offset_of(shape(), i)] = in(0).words[at];
    });
  }

  // Index arrays: a negative index counts from the end, one that is out of range clamps.
  static std::vector<std::int64_t> positions(const Value& indices, std::int64_t size) {
    const Dtype t = indices.type->dtype;
    std::vector<std::int64_t> at = numbers_of(indices.words, t).ints;
    for (std::int64_t& i : at) {
      if (i < 0) i = is_signed(t) ? i + size : size - 1;
      i = std::max<std::int64_t>(0, std::min(i, size - 1));
    }
    return at;
  }

  void take() {
    const auto axis = static_cast<std::size_t>(attr(0));
    const std::vector<std::int64_t> at = positions(in(1), in(0).type->shape[axis]);
    const Shape& indices = in(1).type->shape;
    gather([&](const Index& i, Index& from) {
      for (std::size_t a = 0; a < from.size(); ++a) {
        if (a == axis)
          from[a] = at[offset_of(indices, Ints(i).subspan(axis, indices.size()))];
        else
          from[a] = i[a < axis ? a : a - 1 + indices.size()];
      }
    });
  }

  void take_along() {
    const auto axis = static_cast<std::size_t>(attr(0));
    const std::vector<std::int64_t> at = positions(in(1), in(0).type->shape[axis]);
    gather([&](const Index& i, Index& from) {
      from = i;
      from[axis] = at[offset_of(shape(), i)];
    });
  }

  // Each update is added in the dtype, or stored, in order. A negative index counts from the end; one that is out of range does nothing.
  void scatter() {
    const auto axis = static_cast<std::size_t>(attr(0));
    const Value& indices = in(1);
    const std::vector<std::int64_t> at = numbers_of(indices.words, indices.type->dtype).ints;
    const std::int64_t size = shape()[axis];
    *out_ = in(0).words;
    for_each_index(indices.type->shape, [&](std::size_t k, Index to) {
      std::int64_t i = at[k];
      if (i < 0 && is_signed(indices.type->dtype)) i += size;
      if (i < 0 || i >= size) return;
      to[axis] = i;
      Word& word = (*out_)[offset_of(shape(), to)];
      if (node_->op == Op::PutAlong) {
        word = in(2).words[k];
        return;
      }
      const Word before = word;
      const std::span<const Word> operands[] = {{&before, 1}, {&in(2).words[k], 1}};
      ops::evaluate(Op::Add, dtype(), operands, {&word, 1});
    });
  }

  // One element after the other, in the accumulator's dtype, rounded as it is written.
  void cumulative() {
    const auto axis = static_cast<std::size_t>(attr(0));
    const bool reverse = attr(1) != 0, recurs = node_->op == Op::LinearRecurrence, inclusive = recurs || attr(2) != 0;
    const ops::Cumulation f = ops::cumulation_of(node_->op, dtype());
    const Words x = converted(in(node_->in.size() - 1).words, dtype(), f.accumulator);
    const Words factor = recurs ? converted(in(0).words, dtype(), f.accumulator) : Words{};
    std::int64_t stride = 1;
    for (std::size_t d = axis + 1; d < shape().size(); ++d) stride *= shape()[d];
    const std::int64_t n = shape()[axis];
    const auto apply = [&](Op op, Word a, Word b) {
      const std::span<const Word> operands[] = {{&a, 1}, {&b, 1}};
      Word r = 0;
      ops::evaluate(op, f.accumulator, operands, {&r, 1});
      return r;
    };
    for_each_index(shape(), [&](std::size_t start, const Index& i) {
      if (i[axis] != (reverse ? n - 1 : 0)) return;
      Word total = f.identity;
      for (std::int64_t k = 0, at = static_cast<std::int64_t>(start); k < n; ++k, at += reverse ? -stride : stride) {
        const auto e = static_cast<std::size_t>(at);
        const Word before = total, decayed = recurs && k > 0 ? apply(Op::Multiply, factor[e], total) : total;
        total = recurs && k == 0 ? x[e] : apply(f.step, decayed, x[e]);
        const Word written = inclusive ? total : before;
        ops::convert_elements(f.accumulator, dtype(), {&written, 1}, {&(*out_)[e], 1});
      }
    });
  }

  // Positions along an axis by their elements. NaN is behind all numbers, and no NaN behind another.
  void argsort() {
    const Value& x = in(0);
    const Numbers n = numbers_of(x.words, x.type->dtype);
    const auto axis = static_cast<std::size_t>(attr(0));
    std::size_t stride = 1;
    for (std::size_t d = axis + 1; d < shape().size(); ++d) stride *= static_cast<std::size_t>(shape()[d]);
    for_each_index(shape(), [&](std::size_t first, const Index& i) {
      if (i[axis] != 0) return;
      std::vector<std::size_t> order(static_cast<std::size_t>(shape()[axis]));
      for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
      const auto before = [&](std::size_t a, std::size_t b) {
        const std::size_t at = first + a * stride, other = first + b * stride;
        return is_nan(n, other) ? !is_nan(n, at) : compare(n, x.type->dtype, at, other) < 0;
      };
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return before(a, b) || (a < b && !before(b, a)); });
      for (std::size_t k = 0; k < order.size(); ++k) (*out_)[first + k * stride] = order[k];
    });
  }

  // The positions (row-major) of the elements that each element of the result folds, in order, then the fold of each list.
  void reduce() {
    const Value& x = in(0);
    std::vector<std::vector<std::size_t>> folded(out_->size());
    Index kept;
    for_each_index(x.type->shape, [&](std::size_t at, const Index& i) {
      kept.clear();
      for (std::size_t a = 0; a < i.size(); ++a) {
        if (!ops::is_reduced(node_->attrs, a)) kept.push_back(i[a]);
      }
      folded[offset_of(shape(), kept)].push_back(at);
    });
    const bool sum = node_->op == Op::Sum, product = node_->op == Op::Prod;
    const Dtype t = sum || product ? dtype() : x.type->dtype;
    const Words words = t == x.type->dtype ? x.words : converted(x.words, x.type->dtype, t);
    const Numbers n = numbers_of(words, t);
    for (std::size_t i = 0; i < folded.size(); ++i) {
      (*out_)[i] = sum || product ? fold(n, folded[i], product) : select(n, words, t, folded[i]);
    }
  }

  Word fold(const Numbers& n, const std::vector<std::size_t>& at, bool product) const {
    if (n.integer) {
      Word v = product;
      for (std::size_t i : at) v = product ? v * static_cast<Word>(n.ints[i]) : v + static_cast<Word>(n.ints[i]);
      return word_of(static_cast<std::int64_t>(v), dtype());
    }
    std::complex<double> v = product ? 1.0 : 0.0;
    for (std::size_t i : at) {
      if (!product)
        v += n.reals[i];
      else if (is_complex(dtype()))
        v *= n.reals[i];
      else
        v = v.real() * n.reals[i].real();
    }
    return word_of(v, dtype());
  }

  // max, min, argmax, argmin: NaN first, then the first of the greatest or least; +0 is greater than -0 for max and min alone.
  Word select(const Numbers& n, const Words& words, Dtype t, const std::vector<std::size_t>& at) const {
    const Op op = node_->op;
    if (op == Op::All || op == Op::Any) {
      auto truth = [&](std::size_t i) { return n.integer ? n.ints[i] != 0 : n.reals[i] != 0.0; };
      return op == Op::All ? std::all_of(at.begin(), at.end(), truth) : std::any_of(at.begin(), at.end(), truth);
    }
    check(!at.empty(), "interpret: max, min, argmax or argmin of nothing");
    const bool greatest = op == Op::Max || op == Op::ArgMax, position = op == Op::ArgMax || op == Op::ArgMin;
    std::size_t best = 0;
    for (std::size_t i = 1; i < at.size() && !is_nan(n, at[best]); ++i) {
      const int order = compare(n, t, at[i], at[best]);
      const bool zeros =
          !position && !n.integer && order == 0 && n.reals[at[i]].real() == 0 && std::signbit(n.reals[at[i]].real()) != greatest;
      if (is_nan(n, at[i]) || order == (greatest ? 1 : -1) || zeros) best = i;
    }
    return position ? word_of(static_cast<std::int64_t>(best), dtype()) : words[at[best]];
  }

  void bodies() {
    std::vector<Tensor> operands;
    for (Id id : node_->in) operands.push_back(from_words(g_[id].type.dtype, g_[id].type.shape, values_[id].words));
    values_[static_cast<std::size_t>(node_ - &g_[0])].results = run_bodies(*node_, operands);
  }

  const Graph& g_;
  std::span<const Tensor> inputs_;
  std::vector<Value> values_;
  const Node* node_ = nullptr;
  Words* out_ = nullptr;
};

}  // namespace

Words to_words(const Tensor& t) {
  const auto bytes = static_cast<std::size_t>(size_of(t.dtype));
  Words words(count_of(t.shape), 0);
  check(t.bytes.size() == words.size() * bytes, "a tensor has not the bytes of its shape");
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], t.bytes.data() + i * bytes, bytes);
  return words;
}

Tensor from_words(Dtype dtype, Shape shape, std::span<const Word> words) {
  const auto bytes = static_cast<std::size_t>(size_of(dtype));
  Tensor t{dtype, std::move(shape), std::vector<std::byte>(words.size() * bytes)};
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(t.bytes.data() + i * bytes, &words[i], bytes);
  return t;
}

std::vector<Tensor> interpret(const Graph& g, std::span<const Tensor> inputs) { return Interpreter(g, inputs).run(); }

}  // namespace sinter::graph
