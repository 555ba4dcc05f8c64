// Attention, its cache of keys and values, and transformer encoders.
#pragma once
#include "sinter/nn/layers.h"

namespace sinter::nn {

/// Keys and values of the positions so far, for decoding. State: pass it as an argument or field that the function may write.
struct SINTER_API KeyValueCache {
  /// With a capacity the arrays have that many places from the start, so that a step is traced once; who fills the cache sees to it that
  /// there are no more positions. Without one they grow by what is appended, and each length is a trace.
  explicit KeyValueCache(std::int64_t capacity = 0) : capacity(capacity) {}
  /// Keys and values (batch, heads, n, features) at the next n positions.
  void append(const Array& new_keys, const Array& new_values);
  /// For n queries at the last positions: which keys each may see, (n, places); unset: all.
  Array seen(Dim n, bool causal) const;
  Array keys, values;  // (batch, heads, places, features); unset at first
  Array length{0};     // int32: positions so far
  std::int64_t capacity;
  SINTER_FIELDS(keys, values, length, capacity)
};

struct AttentionOptions {
  int kv_heads = 0;  // heads of keys and values, which divide the others; 0: as many
  bool bias = false;
  bool causal = false;
  bool rope = false;  // rotary positions, base 10000
};
/// Attention in several heads (Vaswani et al., 2017; with fewer heads of keys and values: Ainslie et al., GQA, 2023).
struct SINTER_API MultiHeadAttention {
  MultiHeadAttention() = default;
  /// Error unless heads divide dims and kv_heads divide heads.
  MultiHeadAttention(Dim dims, int heads, const AttentionOptions& options = {});
  /// (batch, n, dims). The mask is scaled_dot_product_attention's.
  Array operator()(const Array& x, const std::optional<Array>& mask = {}) const;
  /// Queries from one sequence, keys and values from others.
  Array operator()(const Array& queries, const Array& keys, const Array& values, const std::optional<Array>& mask = {}) const;
  /// The next positions of sequences whose earlier ones are in the cache, which gets them.
  Array operator()(const Array& x, KeyValueCache& cache, const std::optional<Array>& mask = {}) const;
  Linear query_proj, key_proj, value_proj, out_proj;
  int heads = 0, kv_heads = 0;
  bool causal = false, rope = false;
  SINTER_FIELDS(query_proj, key_proj, value_proj, out_proj, heads, kv_heads, causal, rope)

 private:
  Array run(const Array& q, const Array& k, const Array& v, const std::optional<Array>& mask, KeyValueCache* cache) const;
};

enum class Activation : std::uint8_t { relu, gelu, gelu_tanh, silu };
struct TransformerOptions {
  Dim mlp_dims = 0;  // 0: 4 * dims
  double dropout = 0;
  Activation activation = Activation::relu;
  bool norm_first = true;
  AttentionOptions attention = {};
};
/// Attention and a two-layer network, each with a residual connection and layer_norm, before (norm_first) or after.
struct SINTER_API TransformerEncoderLayer {
  TransformerEncoderLayer() = default;
  TransformerEncoderLayer(Dim dims, int heads, const TransformerOptions& options = {});
  Array operator()(const Array& x, const std::optional<Array>& mask = {}) const;
  Array operator()(const Array& x, KeyValueCache& cache, const std::optional<Array>& mask = {}) const;
  MultiHeadAttention attention;
  LayerNorm ln1, ln2;
  Linear linear1, linear2;
  Dropout dropout1{0}, dropout2{0};
  Activation activation = Activation::relu;
  bool norm_first = true;
  SINTER_FIELDS(attention, ln1, ln2, linear1, linear2, dropout1, dropout2, activation, norm_first)

 private:
  Array run(const Array& x, const std::optional<Array>& mask, KeyValueCache* cache) const;
};
/// Layers one after the other, and a last layer_norm where norms come first.
struct SINTER_API TransformerEncoder {
  TransformerEncoder() = default;
  TransformerEncoder(int count, Dim dims, int heads, const TransformerOptions& options = {});
  Array operator()(const Array& x, const std::optional<Array>& mask = {}) const;
  /// One cache a layer. Error for another number.
  Array operator()(const Array& x, std::vector<KeyValueCache>& caches, const std::optional<Array>& mask = {}) const;
  std::vector<TransformerEncoderLayer> layers;
  LayerNorm ln;
  bool norm_first = true;
  SINTER_FIELDS(layers, ln, norm_first)
};

}  // namespace sinter::nn
