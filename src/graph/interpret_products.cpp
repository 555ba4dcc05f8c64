// Products, convolutions and systems of equations in the interpreter. Layer: graph.
#include <limits>

#include "graph/interpret_parts.h"
#include "ops/convolution.h"

namespace sinter::graph::interpreter {

Words matmul(const Type& type, const Value& a, const Value& b, const Value* c) {
  const Dtype t = type.dtype;
  Words out(count_of(type.shape));
  const Numbers x = numbers_of(a.words, t), y = numbers_of(b.words, t), z = c ? numbers_of(c->words, t) : Numbers{};
  const Shape& sa = a.type->shape;
  const std::size_t axes = sa.size(), rows = count_of({sa[axes - 2]}), inner = count_of({sa[axes - 1]}),
                    columns = count_of({type.shape[axes - 1]});
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::size_t column = at % columns, row = at / columns, batch = row / rows;
    const std::size_t from_a = row * inner, from_b = batch * inner * columns + column;
    if (x.integer) {
      Word v = c ? static_cast<Word>(z.ints[at]) : 0;
      for (std::size_t k = 0; k < inner; ++k) v += static_cast<Word>(x.ints[from_a + k]) * static_cast<Word>(y.ints[from_b + k * columns]);
      out[at] = word_of(static_cast<std::int64_t>(v), t);
    } else {
      std::complex<double> v = 0.0;
      for (std::size_t k = 0; k < inner; ++k) {
        const std::complex<double> p = x.reals[from_a + k], q = y.reals[from_b + k * columns];
        v += is_complex(t) ? p * q : p.real() * q.real();
      }
      out[at] = word_of(c ? v + z.reals[at] : v, t);
    }
  }
  return out;
}

// Term by term of the sum over input * weight * output (ops/convolution.h), in double precision.
Words convolution(const Node& n, const Value& left, const Value& right) {
  const Dtype t = n.type.dtype;
  Words out(count_of(n.type.shape));
  const std::vector<Shape> shapes{left.type->shape, right.type->shape};
  const ops::Convolution c = ops::convolution_of(n.op, n.attrs, shapes);
  const auto roles = ops::operand_roles(n.op);
  const ops::Convolution::Role result = ops::result_role(n.op);
  const Numbers a = numbers_of(left.words, t), b = numbers_of(right.words, t);
  const std::size_t rank = c.axes.size();
  const Shape input = c.shape(ops::Convolution::kInput), weight = c.shape(ops::Convolution::kWeight),
              output = c.shape(ops::Convolution::kOutput);
  std::vector<std::complex<double>> sums(out.size());
  std::vector<Word> counts(out.size());
  for_each_index(output, [&](std::size_t y, const Index& to) {
    Shape inner = weight;
    inner[0] = 1;  // the output channel is given
    for_each_index(inner, [&](std::size_t, const Index& k) {
      Index from = to, kernel = k;
      for (std::size_t i = 0; i < rank; ++i) {
        const ops::ConvAxis& axis = c.axes[i];
        from[i + 1] = to[i + 1] * axis.stride + k[i + 1] * axis.dilation - axis.low;
        if (from[i + 1] < 0 || from[i + 1] >= axis.input) return;
      }
      from[rank + 1] = to[rank + 1] / (c.out / c.groups) * (c.in / c.groups) + k[rank + 1];
      kernel[0] = to[rank + 1];
      const std::size_t at[] = {offset_of(input, from), offset_of(weight, kernel), y};
      const std::size_t p = at[roles[0]], q = at[roles[1]], r = at[result];
      if (a.integer)
        counts[r] += static_cast<Word>(a.ints[p]) * static_cast<Word>(b.ints[q]);
      else
        sums[r] += is_complex(t) ? a.reals[p] * b.reals[q] : a.reals[p].real() * b.reals[q].real();
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) out[i] = a.integer ? word_of(static_cast<std::int64_t>(counts[i]), t) : word_of(sums[i], t);
  return out;
}

// Elimination with the greatest pivot of each column, in double precision.
Words solve(const Type& type, const Value& left, const Value& right) {
  const Dtype t = type.dtype;
  const Shape& shape = type.shape;
  Words out(count_of(shape));
  using Complex = std::complex<double>;
  const Numbers a = numbers_of(left.words, t), b = numbers_of(right.words, t);
  const std::size_t axes = shape.size(), n = count_of({shape[axes - 2]}), k = count_of({shape[axes - 1]});
  const bool real = !is_complex(t);
  const auto times = [&](Complex x, Complex y) { return real ? x.real() * y.real() : x * y; };
  const auto over = [&](Complex x, Complex y) { return real ? x.real() / y.real() : x / y; };
  for (std::size_t first = 0; first * k < out.size(); first += n) {  // the first row of each matrix
    std::vector<std::vector<Complex>> rows(n);
    for (std::size_t i = 0; i < n; ++i) {
      rows[i].assign(&a.reals[(first + i) * n], &a.reals[(first + i) * n] + n);
      rows[i].insert(rows[i].end(), &b.reals[(first + i) * k], &b.reals[(first + i) * k] + k);
    }
    bool singular = false;
    for (std::size_t c = 0; c < n; ++c) {
      std::size_t best = c;
      for (std::size_t i = c + 1; i < n; ++i)
        if (std::abs(rows[i][c]) > std::abs(rows[best][c])) best = i;
      std::swap(rows[c], rows[best]);
      singular = singular || rows[c][c] == 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        if (i == c) continue;
        const Complex factor = over(rows[i][c], rows[c][c]);
        for (std::size_t j = c; j < n + k; ++j) rows[i][j] -= times(factor, rows[c][j]);
      }
    }
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < k; ++j)
        out[(first + i) * k + j] = word_of(singular ? Complex(kNan, real ? 0 : kNan) : over(rows[i][n + j], rows[i][i]), t);
  }
  return out;
}

}  // namespace sinter::graph::interpreter
