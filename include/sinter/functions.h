// The array functions. Names, argument order and defaults are those of MLX's C++ headers, which follow NumPy.
//
// Axes may be negative: they count from the end. What a call rejects it rejects at once, with an Error that names the function.
#pragma once
#include <array>
#include <string_view>

#include "sinter/array.h"
#include "sinter/elementwise.h"

namespace sinter {

// ---- elementwise: those of elementwise.h, one a line of the library's table, and these ----------------------------------------------
// Operands broadcast as in NumPy and promote as promote_types says; scalars are weak. Floating functions turn integers into float32.
// A C++ integer that the arrays' dtype does not hold wraps; comparisons see it as it is, clip, maximum and minimum the nearest that it
// holds.

/// Rounds to `decimals` digits after the point (before it, if negative), halves to even.
SINTER_API Array round(const Operand& x, int decimals);
/// {floor_divide(x, y), remainder(x, y)}.
SINTER_API std::vector<Array> divmod(const Operand& x, const Operand& y);
/// clip(x, low, high) with one bound missing.
SINTER_API Array clip(const Operand& x, std::nullopt_t, const Operand& high);
SINTER_API Array clip(const Operand& x, const Operand& low, std::nullopt_t);
/// Replaces NaN, and infinities by the given numbers (default: the dtype's largest and lowest). Integers stay as they are.
SINTER_API Array nan_to_num(const Operand& x, double nan = 0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
/// |a - b| <= atol + rtol * |b|, element by element; equal infinities are close; NaNs only if equal_nan.
SINTER_API Array isclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Whether all elements are close: a 0-d bool.
SINTER_API Array allclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Whether shapes and all elements are equal: a 0-d bool.
SINTER_API Array array_equal(const Operand& a, const Operand& b, bool equal_nan = false);
SINTER_API Array elu(const Operand& x);         // alpha 1
SINTER_API Array leaky_relu(const Operand& x);  // slope 0.01
/// Converts the elements: integers keep their low bits, float to integer truncates and saturates (NaN gives 0), complex to real drops
/// the imaginary part, to bool is "differs from 0".
SINTER_API Array astype(const Operand& x, Dtype t);

// ---- dtypes -------------------------------------------------------------------------------------------------------------------------
/// The dtype to which these operands promote; scalars are weak.
SINTER_API Dtype result_type(std::initializer_list<Operand> operands);
/// Groups of dtypes, as in NumPy: generic holds all, number all but bool, inexact floating and complex.
enum class Category { generic, number, integer, signedinteger, unsignedinteger, inexact, floating, complexfloating };
SINTER_API bool issubdtype(Dtype t, Category c);
/// Limits of a floating dtype. DtypeError for others.
struct finfo {
  SINTER_API explicit finfo(Dtype t);
  Dtype dtype;
  int bits;
  double min, max;  // lowest and highest finite number
  double eps;       // from 1 to the next number
  double smallest_normal;
};
/// Limits of an integer dtype. DtypeError for others.
struct iinfo {
  SINTER_API explicit iinfo(Dtype t);
  Dtype dtype;
  int bits;
  std::int64_t min;
  std::uint64_t max;
};

// ---- creation -----------------------------------------------------------------------------------------------------------------------
SINTER_API Array zeros(const Shape& shape, Dtype t = float32);
SINTER_API Array ones(const Shape& shape, Dtype t = float32);
/// `value` broadcast to `shape`; without a dtype the value's own.
SINTER_API Array full(const Shape& shape, const Operand& value, std::optional<Dtype> t = {});
SINTER_API Array zeros_like(const Array& x);
SINTER_API Array ones_like(const Array& x);
SINTER_API Array full_like(const Array& x, const Operand& value, std::optional<Dtype> t = {});
/// start, start + step, ... below stop (above it, for a negative step), of the arguments' dtype: integers int32 or wider, else float32.
SINTER_API Array arange(const Number& stop, std::optional<Dtype> t = {});
SINTER_API Array arange(const Number& start, const Number& stop, const Number& step = 1, std::optional<Dtype> t = {});
/// `num` numbers from start to stop, both included.
SINTER_API Array linspace(const Number& start, const Number& stop, Dim num = 50, Dtype t = float32);
/// (n, m) with ones on diagonal k: element (i, i + k). m: n if not given.
SINTER_API Array eye(Dim n, std::optional<Dim> m = {}, int k = 0, Dtype t = float32);
SINTER_API Array identity(Dim n, Dtype t = float32);
/// (n, m) with ones on and below diagonal k.
SINTER_API Array tri(Dim n, std::optional<Dim> m = {}, int k = 0, Dtype t = float32);
/// The last two axes with zeros above (tril) or below (triu) diagonal k.
SINTER_API Array tril(const Array& x, int k = 0);
SINTER_API Array triu(const Array& x, int k = 0);
/// Coordinate matrices from 1-d vectors. Indexing "xy" (the first two axes exchanged) or "ij".
SINTER_API std::vector<Array> meshgrid(const std::vector<Array>& x, bool sparse = false, std::string_view indexing = "xy");
/// Windows of n points, float32.
SINTER_API Array hamming(Dim n);
SINTER_API Array hanning(Dim n);
SINTER_API Array blackman(Dim n);
SINTER_API Array bartlett(Dim n);

// ---- shape and views ----------------------------------------------------------------------------------------------------------------
/// One size may be -1: what is left.
SINTER_API Array reshape(const Array& x, const Shape& shape);
/// Joins the axes from start_axis to end_axis, both included.
SINTER_API Array flatten(const Array& x, Axis start_axis = 0, Axis end_axis = -1);
/// Splits an axis into `shape`, of which one size may be -1.
SINTER_API Array unflatten(const Array& x, Axis axis, const Shape& shape);
/// Drops axes of size 1: the given ones, or all.
SINTER_API Array squeeze(const Array& x, const Axes& axes = {});
/// Adds axes of size 1, at these places of the result.
SINTER_API Array expand_dims(const Array& x, const Axes& axes);
/// Axis i of the result is axis axes[i] of x; reversed without axes.
SINTER_API Array transpose(const Array& x, const Axes& axes = {});
SINTER_API Array swapaxes(const Array& x, Axis a, Axis b);
SINTER_API Array moveaxis(const Array& x, Axis source, Axis destination);
SINTER_API Array broadcast_to(const Operand& x, const Shape& shape);
SINTER_API std::vector<Array> broadcast_arrays(const std::vector<Array>& arrays);
/// The shape to which these broadcast.
SINTER_API Shape broadcast_shapes(const std::vector<Shape>& shapes);
/// x[start:stop:step] on each axis, with NumPy's rules: negative bounds count from the end, bounds out of range are clamped. With a
/// negative step, a stop of -n - 1 or less on an axis of size n goes on through element 0. Axes past the lists' end are kept whole.
SINTER_API Array slice(const Array& x, const Shape& start, const Shape& stop, const Shape& step = {});
/// Reverses the order of elements along axes.
SINTER_API Array flip(const Array& x, const Axes& axes = {});
/// Element (i, j, ...) is element offset + i * strides[0] + j * strides[1] + ... of x flattened. ShapeError when that leaves x.
SINTER_API Array as_strided(const Array& x, const Shape& shape, const Shape& strides, Dim offset = 0);
SINTER_API Array concatenate(const std::vector<Array>& arrays, Axis axis = 0);
/// Joins arrays of one shape along a new axis.
SINTER_API Array stack(const std::vector<Array>& arrays, Axis axis = 0);
namespace detail {
template <class N>
concept Size = Integer<N> || std::same_as<N, Dim>;
SINTER_API std::vector<Array> split_evenly(const Array& x, std::int64_t parts, Axis axis);
}  // namespace detail
/// split(x, 3): equal parts; split(x, {3}): x[:3] and x[3:]. (A template, so that braces are never a number.)
template <detail::Size N>
std::vector<Array> split(const Array& x, N parts, Axis axis = 0) {
  return detail::split_evenly(x, static_cast<std::int64_t>(parts), axis);
}
SINTER_API std::vector<Array> split(const Array& x, const Shape& indices, Axis axis = 0);
/// Puts `value` before and after the elements of each axis: {low, high} an axis, or the same for all.
SINTER_API Array pad(const Array& x, const std::vector<std::pair<Dim, Dim>>& widths, const Operand& value = 0);
SINTER_API Array pad(const Array& x, const std::pair<Dim, Dim>& widths, const Operand& value = 0);
SINTER_API Array pad(const Array& x, Dim width, const Operand& value = 0);

// ---- indexing -----------------------------------------------------------------------------------------------------------------------
/// Elements at `indices` along `axis` (of x flattened, without one); the result has the indices' shape in place of the axis. In an index
/// array negative numbers count from the end and others are clamped; a C++ number out of range is an IndexError.
SINTER_API Array take(const Array& x, const Operand& indices, std::optional<Axis> axis = {});
/// Element (i, j, ...) is x at (i, j, ...) with the index along `axis` replaced by indices(i, j, ...); the other axes broadcast.
SINTER_API Array take_along_axis(const Array& x, const Array& indices, Axis axis);
/// a with `updates` added at `indices` along `axis`: a[..., indices(i), ...] += updates(i, ...), in order, so that repeated indices add up.
/// updates has the shape indices.shape + a.shape with size 1 in place of the axis, and takes a's dtype (halves add in float32 and round
/// once). Negative indices count from the end; what is out of range is dropped.
SINTER_API Array scatter_add(const Array& a, const Array& indices, const Array& updates, Axis axis);
/// The same by places, the reverse of take_along_axis: a(i, j, ...) with the index along `axis` replaced by indices(i, j, ...) gets
/// values(i, j, ...) added; indices broadcast to a's other axes, values to the indices.
SINTER_API Array scatter_add_axis(const Array& a, const Array& indices, const Operand& values, Axis axis);
/// The same with values put in place of the elements; of several for one place the last stays.
SINTER_API Array put_along_axis(const Array& a, const Array& indices, const Operand& values, Axis axis);
/// A new last axis of size num_classes: 1 at the index, 0 elsewhere and for an index out of range.
SINTER_API Array one_hot(const Array& indices, Dim num_classes, Dtype t = float32);

// ---- reductions ---------------------------------------------------------------------------------------------------------------------
// Over the given axes, or all. keepdims leaves them with size 1. Halves accumulate in float32 and round once.
/// bool and small integers add and multiply as int32, or uint32 for uint8 and uint16. Empty: 0 and 1.
SINTER_API Array sum(const Array& x, const Axes& axes = {}, bool keepdims = false);
SINTER_API Array prod(const Array& x, const Axes& axes = {}, bool keepdims = false);
/// float32 for integers; NaN when empty. var divides by n - ddof; std is its square root, and its gradient where all elements are equal 0.
SINTER_API Array mean(const Array& x, const Axes& axes = {}, bool keepdims = false);
SINTER_API Array var(const Array& x, const Axes& axes = {}, bool keepdims = false, int ddof = 0);
SINTER_API Array std(const Array& x, const Axes& axes = {}, bool keepdims = false, int ddof = 0);
/// NaN propagates, in the gradient to all elements; equal extremes share it. ShapeError over an empty axis, unless the result is empty too.
SINTER_API Array max(const Array& x, const Axes& axes = {}, bool keepdims = false);
SINTER_API Array min(const Array& x, const Axes& axes = {}, bool keepdims = false);
/// uint32 position of the first of the extreme elements (of the first NaN, if any), in x flattened if no axis is given.
SINTER_API Array argmax(const Array& x, std::optional<Axis> axis = {}, bool keepdims = false);
SINTER_API Array argmin(const Array& x, std::optional<Axis> axis = {}, bool keepdims = false);
SINTER_API Array all(const Array& x, const Axes& axes = {}, bool keepdims = false);
SINTER_API Array any(const Array& x, const Axes& axes = {}, bool keepdims = false);
/// The Euclidean norm, sqrt(sum(x^2)); in float32 or wider, halves rounded once. Its gradient at a zero vector is 0.
SINTER_API Array norm(const Array& x, const Axes& axes = {}, bool keepdims = false);
/// log(sum(exp(x))), without overflow. Its gradient where it is infinite is 0.
SINTER_API Array logsumexp(const Array& x, const Axes& axes = {}, bool keepdims = false);
/// exp(x) / sum(exp(x)) along axes, without overflow; and its logarithm. Halves compute in float32.
SINTER_API Array softmax(const Array& x, const Axes& axes = {});
SINTER_API Array log_softmax(const Array& x, const Axes& axes = {});

// ---- cumulative ---------------------------------------------------------------------------------------------------------------------
// Each element of the result folds the elements up to it along the axis, itself included unless `inclusive` is false, one after the other;
// `reverse`: from the last to the first. Without an axis, of x flattened. Halves accumulate in float32 and round each result once.
/// As sum and prod: bool and small integers as int32, or uint32 for uint8 and uint16. Not inclusive: the first is 0, or 1. The gradient of
/// cumprod divides by nothing, so that it is right for zeros.
SINTER_API Array cumsum(const Array& x, std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true);
SINTER_API Array cumprod(const Array& x, std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true);
/// NaN from the first NaN on. Not inclusive: the first is the dtype's lowest or highest number, infinite for floats. The derivative is that
/// of the element that set the record: of equal ones the first.
SINTER_API Array cummax(const Array& x, std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true);
SINTER_API Array cummin(const Array& x, std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true);
/// log of the cumulative sum of exp(x), without overflow; float32 for integers. Not inclusive: the first is -inf.
SINTER_API Array logcumsumexp(const Array& x, std::optional<Axis> axis = {}, bool reverse = false, bool inclusive = true);

// ---- sorting ------------------------------------------------------------------------------------------------------------------------
// Ascending along the axis; without one, of x flattened. Equal elements keep their order, NaN comes last, and -0 equals +0. DtypeError for
// complex numbers.
/// The elements in order. Each one's gradient goes to where it came from.
SINTER_API Array sort(const Array& x, std::optional<Axis> axis = {});
/// uint32 positions of the elements in order.
SINTER_API Array argsort(const Array& x, std::optional<Axis> axis = {});

// ---- products -----------------------------------------------------------------------------------------------------------------------
/// Matrix product of the last two axes; the others broadcast. A 1-d operand is a row on the left, a column on the right.
SINTER_API Array matmul(const Array& a, const Array& b);
/// beta * c + alpha * (a x b). With alpha = beta = 1 one operation, which rounds halves once.
SINTER_API Array addmm(const Array& c, const Array& a, const Array& b, double alpha = 1, double beta = 1);

// ---- convolutions and pooling -------------------------------------------------------------------------------------------------------
/// A number for each spatial axis, from the first: 3 for all, or {3, 5}.
template <std::size_t N>
struct PerAxis : std::array<int, N> {
  template <detail::Size I>
  PerAxis(I all) {
    this->fill(static_cast<int>(static_cast<std::int64_t>(all)));
  }
  PerAxis(const std::array<int, N>& each) : std::array<int, N>(each) {}
  template <detail::Size... I>
    requires(N > 1 && sizeof...(I) == N)
  PerAxis(I... each) : std::array<int, N>{static_cast<int>(static_cast<std::int64_t>(each))...} {}
};
/// The same, or none: {}.
template <std::size_t N>
struct PerAxisOrNone : std::optional<PerAxis<N>> {
  using std::optional<PerAxis<N>>::optional;
  PerAxisOrNone(const std::optional<PerAxis<N>>& each) : std::optional<PerAxis<N>>(each) {}
  template <detail::Size... I>
    requires(N > 1 && sizeof...(I) == N)
  PerAxisOrNone(I... each) : std::optional<PerAxis<N>>(std::in_place, each...) {}
};
/// What a kernel sees at each place of the input, weighed and added up (a cross-correlation, as is usual). input (batch, axes..., in),
/// weight (out, axes..., in / groups), result (batch, axes..., out) with (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1 places
/// on each axis, rounded down. Padding is zero. With groups, part g of the out channels sees part g of the in channels. Arrays promote;
/// integers compute in float32, halves add in float32 and round once. The bits do not depend on the number of threads.
SINTER_API Array conv1d(const Array& input, const Array& weight, int stride = 1, int padding = 0, int dilation = 1, int groups = 1);
SINTER_API Array conv2d(const Array& input, const Array& weight, PerAxis<2> stride = 1, PerAxis<2> padding = 0, PerAxis<2> dilation = 1,
                        int groups = 1);
SINTER_API Array conv3d(const Array& input, const Array& weight, PerAxis<3> stride = 1, PerAxis<3> padding = 0, PerAxis<3> dilation = 1,
                        int groups = 1);
/// The greatest element, or the mean, of what a kernel sees: x (batch, height, width, channels), result with
/// (size + 2 padding - kernel) / stride + 1 places on an axis, rounded down. The stride is the kernel's size, if not given. Padding is
/// never the greatest; for the mean it counts as zeros. In the gradient of max_pool2d equal extremes of a window share evenly.
SINTER_API Array max_pool2d(const Array& x, PerAxis<2> kernel, PerAxisOrNone<2> stride = {}, PerAxis<2> padding = 0);
SINTER_API Array avg_pool2d(const Array& x, PerAxis<2> kernel, PerAxisOrNone<2> stride = {}, PerAxis<2> padding = 0);

// ---- of neural networks (losses: losses.h) --------------------------------------------------------------------------------------------
// Compositions that fuse. Halves compute in float32 and round once; results have the promoted dtype of the arrays.
/// (x - mean) / sqrt(variance + eps) along the last axis, times weight, plus bias (both of the last axis' size).
SINTER_API Array layer_norm(const Array& x, const std::optional<Array>& weight = {}, const std::optional<Array>& bias = {},
                            double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) along the last axis, times weight.
SINTER_API Array rms_norm(const Array& x, const std::optional<Array>& weight = {}, double eps = 1e-5);
/// Rotary positions (Su et al., RoFormer, 2021): x (..., length, features) with the first `dims` features turned, pair by pair, by angles
/// (position + offset) * scale * base^(-2 i / dims). Pairs are neighbours (traditional) or i and i + dims / 2. `offset`: one, or one for
/// each element of the first axis.
SINTER_API Array rope(const Array& x, int dims, bool traditional = false, double base = 10000, double scale = 1, const Operand& offset = 0);
/// softmax(scale * queries keys^T + mask) values (Vaswani et al., 2017). queries (batch, heads, n, d), keys (batch, kv_heads, m, d),
/// values (batch, kv_heads, m, e), where kv_heads divides heads and each of its heads serves heads / kv_heads of the queries' (grouped
/// queries). mask_mode "causal": query i sees keys up to m - n + i. The mask broadcasts to (batch, heads, n, m): bool, true where a key is
/// seen, or numbers that are added. A row that sees nothing weighs all keys alike. The scores of many queries are never in memory at once:
/// they are worked on by blocks of rows, and again where a gradient needs them.
SINTER_API Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale,
                                              std::string_view mask_mode = "", const std::optional<Array>& mask = {});
SINTER_API Array scaled_dot_product_attention(const Array& queries, const Array& keys, const Array& values, double scale,
                                              const Array& mask);

}  // namespace sinter
