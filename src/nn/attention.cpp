// Attention, its cache, transformer encoders. Layer: nn.
#include "sinter/nn/attention.h"

#include <cmath>

#include "base/check.h"

namespace sinter::nn {
namespace {

// (batch, n, heads * d) to (batch, heads, n, d).
Array split_heads(const Array& x, int heads) {
  return transpose(reshape(x, {x.shape(0), x.shape(1), heads, x.shape(2) / heads}), {0, 2, 1, 3});
}

}  // namespace

void KeyValueCache::append(const Array& new_keys, const Array& new_values) {
  const Dim n = new_keys.shape(2);
  if (capacity == 0) {
    keys = keys.valid() ? concatenate({keys, new_keys}, 2) : new_keys;
    values = values.valid() ? concatenate({values, new_values}, 2) : new_values;
  } else {
    auto places = [&](const Array& x) {
      Shape s = x.shape();
      s[2] = capacity;
      return s;
    };
    if (!keys.valid()) {
      keys = zeros(places(new_keys), new_keys.dtype());
      values = zeros(places(new_values), new_values.dtype());
    }
    if (n > capacity)
      throw ShapeError(str("KeyValueCache: there are more positions than places; got ", n, " for ", capacity, "; use a larger capacity"));
    // Place p gets new position p - length.
    const Array at = arange(capacity) - length, is_new = logical_and(at >= 0, at < n), mask = reshape(is_new, {1, 1, capacity, 1});
    auto write = [&](const Array& to, const Array& from) { return where(mask, n == 1 ? from : take(from, clip(at, 0, n - 1), 2), to); };
    keys = write(keys, new_keys);
    values = write(values, new_values);
  }
  length = length + n;
}

Array KeyValueCache::seen(Dim n, bool causal) const {
  const Dim places = capacity == 0 ? keys.shape(2) : Dim(capacity);
  if (capacity == 0 && (!causal || n == 1)) return Array();
  const Array last = causal ? length - n + arange(n) : broadcast_to(length - 1, {n});  // that each query sees
  return arange(places) <= expand_dims(last, 1);
}

MultiHeadAttention::MultiHeadAttention(Dim dims, int heads, const AttentionOptions& o)
    : heads(heads), kv_heads(o.kv_heads == 0 ? heads : o.kv_heads), causal(o.causal), rope(o.rope) {
  if (heads < 1 || dims % heads != 0 || kv_heads < 1 || heads % kv_heads != 0) {
    throw ShapeError(str("MultiHeadAttention: the heads do not fit; got dims ", dims, ", heads ", heads, " and kv_heads ", kv_heads,
                         "; make dims a multiple of heads, and heads one of kv_heads"));
  }
  const Dim narrow = dims / heads * kv_heads;
  query_proj = Linear(dims, dims, o.bias);
  key_proj = Linear(dims, narrow, o.bias);
  value_proj = Linear(dims, narrow, o.bias);
  out_proj = Linear(dims, dims, o.bias);
}

Array MultiHeadAttention::run(const Array& queries, const Array& keys, const Array& values, const std::optional<Array>& mask,
                              KeyValueCache* cache) const {
  for (const Array* a : {&queries, &keys, &values})
    if (a->ndim() != 3) throw ShapeError(str("MultiHeadAttention: takes (batch, length, features); got ", a->shape(), "; give three axes"));
  Array q = split_heads(query_proj(queries), heads), k = split_heads(key_proj(keys), kv_heads),
        v = split_heads(value_proj(values), kv_heads);
  const int d = static_cast<int>(static_cast<std::int64_t>(q.shape(3)));
  if (rope) {
    const Array offset = cache ? cache->length : Array(0);
    q = sinter::rope(q, d, false, 10000, 1, offset);
    k = sinter::rope(k, d, false, 10000, 1, offset);
  }
  std::optional<Array> both = mask;
  if (cache) {
    cache->append(k, v);
    k = cache->keys, v = cache->values;
    const Array seen = cache->seen(q.shape(2), causal);
    if (seen.valid() && !mask)
      both = seen;
    else if (seen.valid())
      both = mask->dtype() == bool_ ? logical_and(*mask, seen) : where(seen, *mask, finfo(float32).min);
  }
  const bool last = causal && !cache;  // the cache has said it
  const Array y = scaled_dot_product_attention(q, k, v, 1 / std::sqrt(static_cast<double>(d)), last ? "causal" : "", both);
  return out_proj(reshape(transpose(y, {0, 2, 1, 3}), {y.shape(0), y.shape(2), y.shape(1) * y.shape(3)}));
}
Array MultiHeadAttention::operator()(const Array& x, const std::optional<Array>& mask) const { return run(x, x, x, mask, nullptr); }
Array MultiHeadAttention::operator()(const Array& queries, const Array& keys, const Array& values, const std::optional<Array>& mask) const {
  return run(queries, keys, values, mask, nullptr);
}
Array MultiHeadAttention::operator()(const Array& x, KeyValueCache& cache, const std::optional<Array>& mask) const {
  return run(x, x, x, mask, &cache);
}

TransformerEncoderLayer::TransformerEncoderLayer(Dim dims, int heads, const TransformerOptions& o)
    : attention(dims, heads, o.attention),
      ln1(dims),
      ln2(dims),
      linear1(dims, o.mlp_dims == 0 ? dims * 4 : o.mlp_dims),
      linear2(o.mlp_dims == 0 ? dims * 4 : o.mlp_dims, dims),
      dropout1(o.dropout),
      dropout2(o.dropout),
      activation(o.activation),
      norm_first(o.norm_first) {}

Array TransformerEncoderLayer::run(const Array& x, const std::optional<Array>& mask, KeyValueCache* cache) const {
  auto attend = [&](const Array& h) { return dropout1(cache ? attention(h, *cache, mask) : attention(h, mask)); };
  auto network = [&](const Array& h) {
    const Array wide = linear1(h);
    const Array bent = activation == Activation::relu   ? relu(wide)
                       : activation == Activation::gelu ? gelu(wide)
                       : activation == Activation::silu ? silu(wide)
                                                        : gelu_tanh(wide);
    return linear2(dropout2(bent));
  };
  if (norm_first) {
    const Array y = x + attend(ln1(x));
    return y + network(ln2(y));
  }
  const Array y = ln1(x + attend(x));
  return ln2(y + network(y));
}
Array TransformerEncoderLayer::operator()(const Array& x, const std::optional<Array>& mask) const { return run(x, mask, nullptr); }
Array TransformerEncoderLayer::operator()(const Array& x, KeyValueCache& cache, const std::optional<Array>& mask) const {
  return run(x, mask, &cache);
}

TransformerEncoder::TransformerEncoder(int count, Dim dims, int heads, const TransformerOptions& options) : norm_first(options.norm_first) {
  for (int i = 0; i < count; ++i) layers.emplace_back(dims, heads, options);
  if (norm_first) ln = LayerNorm(dims);
}
Array TransformerEncoder::operator()(const Array& x, const std::optional<Array>& mask) const {
  Array y = x;
  for (const TransformerEncoderLayer& layer : layers) y = layer(y, mask);
  return norm_first ? ln(y) : y;
}
Array TransformerEncoder::operator()(const Array& x, std::vector<KeyValueCache>& caches, const std::optional<Array>& mask) const {
  if (caches.size() != layers.size())
    throw Error(
        str("TransformerEncoder: the caches do not fit the layers; got ", caches.size(), " for ", layers.size(), "; give one each"));
  Array y = x;
  for (std::size_t i = 0; i < layers.size(); ++i) y = layers[i](y, caches[i], mask);
  return norm_first ? ln(y) : y;
}

}  // namespace sinter::nn
