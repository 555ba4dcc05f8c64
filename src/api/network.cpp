// Functions of neural networks, each a composition that fuses. Layer: api.
#include <cmath>

#include "api/common.h"
#include "engine/blocks.h"

namespace sinter {
namespace {

// The operand of a function along its last axis, in the dtype in which it computes, and the dtype of the result.
struct Rows {
  Array x;
  Dtype result;
  Rows(const char* what, const Array& operand, std::initializer_list<const std::optional<Array>*> factors) {
    const Shape& s = api::shape_of(operand, what);
    result = api::at_least_float(operand.dtype());
    if (s.empty()) throw ShapeError(str(what, ": x is 0-d; got ", s, "; give it an axis"));
    for (const std::optional<Array>* f : factors) {
      if (!*f) continue;
      if (!(api::shape_of(**f, what) == Shape{s.back()})) {
        throw ShapeError(
            str(what, ": weight or bias does not fit the last axis; got ", (*f)->shape(), " for x ", s, "; use shape ", Shape{s.back()}));
      }
      result = promote_types(result, (*f)->dtype());
    }
    if (is_complex(result)) throw DtypeError(str(what, ": does not take complex64; got complex64; take its real() or imag() first"));
    x = engine::cast(operand, api::computing(result));
  }
  Array finish(Array y, const std::optional<Array>& weight, const std::optional<Array>& bias) const {
    if (weight) y = y * engine::cast(*weight, x.dtype());
    if (bias) y = y + engine::cast(*bias, x.dtype());
    return engine::cast(y, result);
  }
};

}  // namespace

Array layer_norm(const Array& operand, const std::optional<Array>& weight, const std::optional<Array>& bias, double eps) {
  const Rows r("layer_norm", operand, {&weight, &bias});
  const Array centred = r.x - mean(r.x, -1, true);
  return r.finish(centred * rsqrt(mean(square(centred), -1, true) + eps), weight, bias);
}

Array rms_norm(const Array& operand, const std::optional<Array>& weight, double eps) {
  const Rows r("rms_norm", operand, {&weight});
  return r.finish(r.x * rsqrt(mean(square(r.x), -1, true) + eps), weight, {});
}

Array rope(const Array& operand, int dims, bool traditional, double base, double scale, const Operand& offset) {
  const Shape& s = api::shape_of(operand, "rope");
  if (s.size() < 2) throw ShapeError(str("rope: x needs a length and features; got ", s, "; give it two axes or more"));
  if (dims <= 0 || dims % 2 != 0 || s.back() < dims)
    throw ShapeError(
        str("rope: the features to turn are no pairs of x's; got dims ", dims, " for x ", s, "; use an even number up to ", s.back()));
  if (!is_floating(operand.dtype())) throw DtypeError(str("rope: x is not floating; got ", operand.dtype(), "; convert with astype first"));
  if (!(base > 0)) throw Error(str("rope: the base is not positive; got ", base, "; use 10000"));
  const Array start = api::to_array(offset, "rope");
  if (start.ndim() > 1 || (start.ndim() == 1 && start.shape(0) != 1 && start.shape(0) != s[0])) {
    throw ShapeError(str("rope: the offset does not fit the first axis; got ", start.shape(), " for x ", s, "; give one, or ", s[0]));
  }
  const Dtype t = api::computing(operand.dtype());
  const int half = dims / 2, axes = static_cast<int>(s.size());
  const Dim length = s[s.size() - 2];

  // Angles (length, half), with axes before them where there is an offset for each element of the first.
  Array positions = expand_dims(arange(length, t), 1);
  Array first = engine::cast(start, t);
  if (first.ndim() == 1) {
    Shape places(std::vector<Dim>(s.size(), 1));
    places[0] = first.shape(0);
    first = reshape(first, places);
  }
  const Array angles = ((positions + first) * scale) * exp(arange(half, t) * (-std::log(base) / half));
  const Array c = cos(angles), sn = sin(angles), x = engine::cast(operand, t);

  auto part = [&](const Dim& from, const Dim& to) { return api::sliced(x, axes - 1, from, to - from); };
  Array turned;
  if (traditional) {
    Shape pairs = s;
    pairs[pairs.size() - 1] = half;
    pairs.push_back(2);
    const Array both = reshape(part(0, dims), pairs);
    const Array a = squeeze(api::sliced(both, axes, 0, 1), -1), b = squeeze(api::sliced(both, axes, 1, 1), -1);
    Shape joined = s;
    joined[joined.size() - 1] = dims;
    turned = reshape(stack({a * c - b * sn, a * sn + b * c}, -1), joined);
  } else {
    const Array a = part(0, half), b = part(half, dims);
    turned = concatenate({a * c - b * sn, a * sn + b * c}, -1);
  }
  if (s.back() > dims) turned = concatenate({turned, part(dims, s.back())}, -1);
  return engine::cast(turned, operand.dtype());
}

namespace {

// Up to so many queries a product reads keys and values once, and nothing is gained by blocks.
constexpr std::int64_t kFewQueries = 4;
// Rows of a block: scores that stay in a second-level cache (512 KiB of float32); but as many as are worth packing keys and values for the
// products (with 32 of 2048 keys each way takes 1.2 times as long), and with a causal mask a quarter of all, since a block skips the keys
// that none of its rows sees. In whole tiles of a product.
constexpr std::int64_t kBlockScores = 131072, kLeastRows = 64, kCausalBlocks = 4, kTileRows = 16;
// With a causal mask blocks that follow each other in a part of the queries read the same keys: so many parts at most.
constexpr std::int64_t kMostParts = 16;

// How n queries of m keys are divided: from the first one on into blocks of `rows`; the last block has what is left, and more than a few.
// Defined for all numbers. `part` is counted from the last; one that there is not has no blocks. Number 0 is the last block.
struct Division {
  std::int64_t rows, last;          // of a block; of the last one
  std::int64_t start, count, keys;  // the first query of the part, its blocks, and the keys that they read

  explicit Division(std::span<const std::int64_t> a)
      : Division(std::clamp(a[0], kFewQueries + 1, kMostRows), std::clamp<std::int64_t>(a[1], 1, kMostRows), a[2] != 0, a[3]) {}

 private:
  static constexpr std::int64_t kMostRows = std::int64_t{1} << 40;  // more are in no memory
  Division(std::int64_t n, std::int64_t m, bool causal, std::int64_t part) {
    const auto tiles = [n](std::int64_t pieces) { return (n + pieces * kTileRows - 1) / (pieces * kTileRows) * kTileRows; };
    rows = std::max(kBlockScores / m / kTileRows * kTileRows, kLeastRows);
    if (causal) rows = std::min(rows, std::max(tiles(kCausalBlocks), kLeastRows));
    const std::int64_t full = (n - kFewQueries - 1) / rows, parts = std::min(full, causal ? kMostParts : 1);
    last = n - full * rows;
    const auto block = [&](std::int64_t p) { return p > parts ? 0 : p == 0 ? full : full * (parts - p) / parts; };  // the first of a part
    start = block(part) * rows;
    count = part == 0 ? 1 : block(part - 1) - block(part);
    // Where a row sees no key at all, it weighs all of them.
    keys = causal && part > 0 && count > 0 && start + m - n >= 0 ? start + count * rows + m - n : m;
  }
};

template <std::int64_t Division::* kNumber>
std::int64_t number(std::span<const std::int64_t> a) {
  return Division(a).*kNumber;
}

struct Attention {
  double scale;
  Dtype dtype;
  bool masked, mask_rows, causal;  // mask_rows: the mask has a row for each query
  bool means;                      // where a mask may leave a query no key, of the keys that its block reads: it weighs all of them
  std::size_t grid;                // axes before those of queries and features
  Dim n, m;                        // queries, keys
};

// Queries, keys and values; then the mask, the mean of the values and, where it is causal, the last key that each query sees and the number
// of each key.
Array attend_rows(const Attention& a, std::span<const Array> in) {
  const Array &q = in[0], &k = in[1], &v = in[2];
  const Dim rows = q.shape(-2), keys = k.shape(-2);
  // Queries that share keys are rows of one product: no key is repeated.
  Shape apart = q.shape(), together = apart;
  if (together.size() > 4) {
    together[together.size() - 2] = together[together.size() - 3] * rows;
    together[together.size() - 3] = 1;
  }
  const Array products = matmul(reshape(q, together), swapaxes(k, -1, -2));
  apart[apart.size() - 1] = together[together.size() - 1] = keys;
  Array scores = reshape(engine::cast(products, api::computing(a.dtype)), apart) * a.scale;
  const double never = finfo(scores.dtype()).min;
  if (a.masked) {
    Array mask = in[3];
    if (mask.shape(-1) != 1 && !base::same(keys, a.m)) mask = api::sliced(mask, mask.ndim() - 1, 0, keys);
    scores = mask.dtype() == bool_ ? where(mask, scores, never) : scores + engine::cast(mask, scores.dtype());
  }
  if (a.causal) scores = where(in[in.size() - 1] <= expand_dims(in[in.size() - 2], -1), scores, never);
  apart[apart.size() - 1] = v.shape(-1);
  const Array y = reshape(matmul(reshape(engine::cast(softmax(scores, -1), a.dtype), together), v), apart);
  return a.means ? where(max(scores, -1, true) == never, in[4], y) : y;
}

// The definition where there are many queries: in regular calls, too.
Array attend_by_blocks(const Attention& a, std::span<const Array> operands) {
  std::vector<engine::Blocks> list;
  for (std::int64_t part = 0; part <= (a.causal ? kMostParts : 1); ++part) {
    const auto follow = [&](const char* name, base::DimFunction f, std::int64_t low) {
      return base::apply(name, f, {a.n, a.m, Dim(int{a.causal}), part}, low, 2);
    };
    const Dim count = follow("blocks", number<&Division::count>, 0), start = follow("start", number<&Division::start>, 0);
    const Dim size =
        part == 0 ? follow("last", number<&Division::last>, kFewQueries + 1) : follow("rows", number<&Division::rows>, kLeastRows);
    const Dim keys = part == 0 || !a.causal ? a.m : follow("keys", number<&Division::keys>, 1);
    engine::Blocks b{count, {{start, size}, {0, keys}, {0, keys}}};
    if (a.masked) b.windows.push_back(a.mask_rows ? graph::BlocksParts::Window{start, size} : graph::BlocksParts::Window{0, 1});
    if (a.means) b.windows.push_back({0, 1});
    if (a.causal) b.windows.insert(b.windows.end(), {{start, size}, {0, keys}});
    b.windows.push_back({start, size});
    list.push_back(std::move(b));
  }
  std::vector<char> cut{1, 0, 0};
  if (a.masked) cut.push_back(a.mask_rows);
  if (a.means) cut.push_back(0);
  if (a.causal) cut.insert(cut.end(), {1, 0});
  return engine::blocks("scaled_dot_product_attention", a.grid, operands, cut, a.n, list,
                        [&](std::span<const Array> in) { return attend_rows(a, in); });
}

Array attend(const Array& queries, const Array& keys, const Array& values, double scale, bool causal, const std::optional<Array>& mask) {
  constexpr const char* what = "scaled_dot_product_attention";
  for (const Array* a : {&queries, &keys, &values}) {
    const Shape& s = api::shape_of(*a, what);
    if (s.size() != 4)
      throw ShapeError(str(what, ": takes (batch, heads, length, features); got ", s, "; give queries, keys and values four axes"));
    if (!is_floating(a->dtype())) throw DtypeError(str(what, ": takes floating arrays; got ", a->dtype(), "; convert with astype first"));
  }
  const Shape &q = queries.shape(), &k = keys.shape(), &v = values.shape();
  const Dim batch = q[0], heads = q[1], n = q[2], d = q[3], groups = k[1], m = k[2];
  if (k[0] != batch || v[0] != batch || k[3] != d || v[1] != groups || v[2] != m || groups == 0 || heads % groups != 0) {
    throw ShapeError(str(what, ": queries, keys and values do not fit; got ", q, ", ", k, " and ", v,
                         "; make batches equal, keys' features those of queries, keys and values equal up to the last axis, and heads a "
                         "multiple of theirs"));
  }
  const Dtype t = promote_types(promote_types(queries.dtype(), keys.dtype()), values.dtype());
  const Shape scores{batch, heads, n, m};
  if (mask) {
    const Shape shapes[] = {api::shape_of(*mask, what), scores};
    if (!(api::broadcast_shapes(what, shapes) == scores)) {
      throw ShapeError(
          str(what, ": the mask does not broadcast to the scores; got ", mask->shape(), " for ", scores, "; make its axes equal or 1"));
    }
    if (mask->dtype() != bool_ && !is_floating(mask->dtype()))
      throw DtypeError(str(what, ": the mask is neither bool nor floating; got ", mask->dtype(), "; convert with astype first"));
  }
  // An axis of the grid for heads that share keys, where there are such.
  const bool shared = groups != heads;
  const bool mask_rows = mask && mask->ndim() > 1 && mask->shape(-2) != 1;
  const bool few = n <= kFewQueries || api::is_empty(scores) || api::is_empty(q) || api::is_empty(v);
  const bool means = causal && mask && mask->dtype() == bool_ && !few;
  const Attention a{scale, t, mask.has_value(), mask_rows, causal, means, shared ? 3u : 2u, n, m};
  auto with_grid = [&](const Array& x, Dim first, Dim group, Dim head) {
    const Shape& s = x.shape();
    const Dim rows = s[s.size() - 2], columns = s.back();
    return shared ? reshape(x, {first, group, head, rows, columns}) : reshape(x, {first, group * head, rows, columns});
  };
  std::vector<Array> operands{with_grid(engine::cast(queries, t), batch, groups, heads / groups),
                              with_grid(engine::cast(keys, t), batch, groups, 1), with_grid(engine::cast(values, t), batch, groups, 1)};
  if (mask) {
    Shape s = mask->shape();
    while (s.size() < 4) s.insert(0, 1);
    const bool every = s[1] == 1;
    operands.push_back(with_grid(reshape(*mask, s), s[0], every ? Dim(1) : groups, every ? Dim(1) : heads / groups));
  }
  if (means) operands.push_back(mean(operands[2], -2, true));
  if (causal) {
    for (const Dim& from : {a.m - a.n, Dim(0)}) {
      const Array numbers = arange(from, a.m, 1, Dtype::int32);
      operands.push_back(shared ? reshape(numbers, {1, 1, 1, a.m - from}) : reshape(numbers, {1, 1, a.m - from}));
    }
  }
  return reshape(few ? attend_rows(a, operands) : attend_by_blocks(a, operands), {batch, heads, n, v[3]});
}

}  // namespace

Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale, std::string_view mode,
                                   const std::optional<Array>& mask) {
  if (mode != "" && mode != "causal" && mode != "array") {
    throw Error(str("scaled_dot_product_attention: unknown mask_mode; got \"", mode, "\"; use \"\", \"causal\" or \"array\" with a mask"));
  }
  return attend(queries, keys, values, scale, mode == "causal", mask);
}
Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale, const Array& mask) {
  return attend(queries, keys, values, scale, false, mask);
}

}  // namespace sinter
