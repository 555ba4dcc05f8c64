// Every message that a wrong call of a function throws: expression, type and exact text. Thrown by the call, not when evaluated.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backends/codegen.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;

struct Row {
  const char* expression;
  const char* type;
  const char* text;
  std::function<void()> call;
};
#define THROWS(type, text, ...)                             \
  Row {                                                     \
    #__VA_ARGS__, #type, text, [&] { (void)(__VA_ARGS__); } \
  }

const char* type_of(const Error& e) {
  if (dynamic_cast<const ShapeError*>(&e)) return "ShapeError";
  if (dynamic_cast<const DtypeError*>(&e)) return "DtypeError";
  if (dynamic_cast<const IndexError*>(&e)) return "IndexError";
  if (dynamic_cast<const IoError*>(&e)) return "IoError";
  if (dynamic_cast<const DeviceError*>(&e)) return "DeviceError";
  if (dynamic_cast<const OutOfMemory*>(&e)) return "OutOfMemory";
  return "Error";
}

void run(const std::vector<Row>& rows) {
  for (const Row& r : rows) {
    try {
      r.call();
      ADD_FAILURE() << r.expression << " threw nothing";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), r.text) << r.expression;
      EXPECT_STREQ(type_of(e), r.type) << r.expression;
    } catch (const std::exception& e) {
      ADD_FAILURE() << r.expression << " threw another exception: " << e.what();
    }
  }
}

const Array m({{1, 2, 3}, {4, 5, 6}});
const Array v({1.f, 2.f});
const Array s(2.0);
const Array c(std::complex<float>(1, 2));
const Array b({true, false});
const Array e = zeros({2, 0});

TEST(Errors, arrays) {
  run({
      THROWS(Error, "sum: the array is unset; got an array that was default constructed or moved from; assign a value first", sum(Array())),
      THROWS(Error, "add: the array is unset; got an array that was default constructed or moved from; assign a value first", Array() + 1),
      THROWS(Error, "shape: the array is unset; got an array that was default constructed or moved from; assign a value first",
             Array().shape()),
      THROWS(Error, "item: the array is unset; got an array that was default constructed or moved from; assign a value first",
             Array().item<int>()),
      THROWS(Error, "reshape: the array is unset; got an array that was default constructed or moved from; assign a value first",
             reshape(Array(), {1})),
      THROWS(ShapeError, "shape: axis out of range; got 2 for shape (2,3); use -2 to 1", m.shape(2)),
      THROWS(ShapeError, "shape: axis out of range; got 0 for shape (); a 0-d array has no axes", s.shape(0)),
      THROWS(ShapeError, "item: the array has not exactly one element; got shape (2); use to_vector<T>()", v.item<float>()),
      THROWS(DtypeError, "data: the type is not the array's; got float64 for float32; use data of its type, or astype first",
             v.data<double>()),
      THROWS(ShapeError, "bool: an array without exactly one element is neither true nor false; got shape (2); use all() or any()",
             bool(v)),
      THROWS(ShapeError, "Array: the number of elements does not fit the shape; got 3 for (2,2); give 4", Array({1, 2, 3}, Shape{2, 2})),
      THROWS(ShapeError, "Array: a size is negative; got (-3); use sizes of 0 or more", Array({1, 2, 3}, Shape{-3})),
  });
}

TEST(Errors, elementwise) {
  run({
      THROWS(ShapeError, "add: shapes cannot be broadcast; got (2) and (2,3); make the axes equal or 1", v + m),
      THROWS(ShapeError, "clip: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1",
             clip(v, Array({1, 2, 3}), std::nullopt)),
      THROWS(ShapeError, "clip: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1",
             clip(v, std::nullopt, Array({1, 2, 3}))),
      THROWS(Error, "clip: the array is unset; got an array that was default constructed or moved from; assign a value first",
             clip(Array(), 1, std::nullopt)),
      THROWS(ShapeError, "where: shapes cannot be broadcast; got (2), (3) and (2); make the axes equal or 1",
             where(b, Array({1, 2, 3}), v)),
      THROWS(ShapeError, "fma: shapes cannot be broadcast; got (2), (2) and (3); make the axes equal or 1", fma(v, v, Array({1, 2, 3}))),
      THROWS(ShapeError, "multiply: shapes cannot be broadcast; got (2,0) and (2); make the axes equal or 1", e * v),
      THROWS(DtypeError, "negative: takes numbers, not bool; got bool; convert with astype first", -b),
      THROWS(DtypeError, "subtract: takes numbers, not bool; got bool and bool; convert with astype first", b - true),
      THROWS(DtypeError, "bitwise_and: takes bool or integers; got int32 and float32; convert with astype first", m & Array(1.0)),
      THROWS(DtypeError, "left_shift: takes integers; got bool and bool; convert with astype first", b << true),
      THROWS(DtypeError, "less: does not take complex64; got complex64 and complex64; take its real() or imag() first", c < c),
      THROWS(DtypeError, "exp: does not take complex64; got complex64; take its real() or imag() first", exp(c)),
      THROWS(DtypeError, "nan_to_num: takes real numbers; got complex64; use it on real() and imag()", nan_to_num(c)),
      THROWS(DtypeError, "finfo: the dtype is not floating; got int8; use iinfo for integers", finfo(int8)),
      THROWS(DtypeError, "iinfo: the dtype is not an integer; got float32; use finfo for floating dtypes", iinfo(float32)),
      THROWS(Error, "isclose: the array is unset; got an array that was default constructed or moved from; assign a value first",
             isclose(Array(), 1)),
      THROWS(ShapeError, "add: the array would have more than 2^63 bytes; got (1099511627776,1099511627776); use smaller sizes",
             broadcast_to(v, {std::int64_t{1} << 39, 2}).reshape({std::int64_t{1} << 40, 1}) +
                 reshape(broadcast_to(s, {std::int64_t{1} << 40}), {1, -1})),
      THROWS(Error, "result_type: there are no operands; got {}; give one or more", result_type({})),
  });
}

TEST(Errors, creation) {
  run({
      THROWS(ShapeError, "zeros: a size is negative; got (2,-1); use sizes of 0 or more", zeros({2, -1})),
      THROWS(ShapeError, "ones: the array would have more than 2^63 bytes; got (4294967296,4294967296); use smaller sizes",
             ones({std::int64_t{1} << 32, std::int64_t{1} << 32})),
      THROWS(ShapeError, "full: the value does not broadcast to the shape; got (2) and (1); make the value's axes equal or 1",
             full({1}, v)),
      THROWS(ShapeError, "full: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1", full({3}, v)),
      THROWS(Error, "arange: the step is 0; got start 0, stop 3, step 0; use real, finite numbers and a step that is not 0",
             arange(0, 3, 0)),
      THROWS(Error, "arange: an argument is not finite; got start 0, stop inf, step 1; use real, finite numbers and a step that is not 0",
             arange(INFINITY)),
      THROWS(DtypeError, "arange: the dtype has no numbers; got bool; use an integer or floating dtype", arange(3, bool_)),
      THROWS(ShapeError, "linspace: the number of points is negative; got -1; use 0 or more", linspace(0, 1, -1)),
      THROWS(ShapeError, "eye: a size is negative; got (-1,-1); use sizes of 0 or more", eye(-1)),
      THROWS(ShapeError, "tril: the array has fewer than 2 axes; got shape (2); give a matrix", tril(v)),
      THROWS(ShapeError, "meshgrid: an array has more than 1 axis; got shape (2,3); give vectors", meshgrid({m})),
      THROWS(Error, "meshgrid: unknown indexing; got \"yx\"; use \"xy\" or \"ij\"", meshgrid({v}, false, "yx")),
  });
}

TEST(Errors, views) {
  run({
      THROWS(ShapeError, "reshape: the number of elements does not fit; got (2,3) to (4,2); the sizes' product must be 6",
             reshape(m, {4, 2})),
      THROWS(ShapeError, "reshape: the number of elements does not fit; got (2,3) to (4,-1); the sizes' product must be 6",
             reshape(m, {4, -1})),
      THROWS(ShapeError, "reshape: the number of elements does not fit; got (2,0) to (0,-1); the sizes' product must be 0",
             reshape(e, {0, -1})),
      THROWS(ShapeError, "reshape: more than one size is -1; got (-1,-1); use sizes of 0 or more, and -1 once at most",
             reshape(m, {-1, -1})),
      THROWS(ShapeError, "reshape: a size is negative; got (-2,3); use sizes of 0 or more, and -1 once at most", reshape(m, {-2, 3})),
      THROWS(ShapeError, "flatten: the first axis comes after the last; got 1 and 0 for shape (2,3); exchange them", flatten(m, 1, 0)),
      THROWS(ShapeError, "unflatten: the number of elements does not fit; got (3) to (2,2); the sizes' product must be 3",
             unflatten(m, 1, {2, 2})),
      THROWS(ShapeError, "squeeze: the axis is not of size 1; got axis 0 of shape (2,3); name axes of size 1", squeeze(m, 0)),
      THROWS(ShapeError, "expand_dims: axis out of range; got 3 for shape (1,1,1); use -3 to 2", expand_dims(m, 3)),
      THROWS(ShapeError, "expand_dims: a place is given twice; got axis -4 for shape (2,3); give each place once", expand_dims(m, {0, -4})),
      THROWS(ShapeError, "transpose: the number of axes does not fit; got 1 axes for shape (2,3); give each axis once", transpose(m, 0)),
      THROWS(ShapeError, "transpose: an axis is given twice; got axis 1 for shape (2,3); give each axis once", transpose(m, {1, -1})),
      THROWS(ShapeError, "swapaxes: axis out of range; got -3 for shape (2,3); use -2 to 1", swapaxes(m, 0, -3)),
      THROWS(ShapeError, "broadcast_to: the array does not broadcast to the shape; got (2,3) to (3); make its axes equal or 1",
             broadcast_to(m, {3})),
      THROWS(ShapeError, "broadcast_arrays: shapes cannot be broadcast; got (2,3) and (2); make the axes equal or 1",
             broadcast_arrays({m, v})),
      THROWS(ShapeError,
             "slice: the lists do not fit; got start (0,0,0), stop (1), step () for shape (2,3); give a start and a stop for each axis",
             slice(m, {0, 0, 0}, {1})),
      THROWS(ShapeError, "slice: a step is 0; got (0); use another step", slice(m, {0}, {1}, {0})),
      THROWS(ShapeError, "as_strided: the view leaves the array; got shape (2,2), strides (1,1), offset 0 of 2 elements; stay inside",
             as_strided(v, {2, 2}, {1, 1})),
      THROWS(ShapeError, "as_strided: the view leaves the array; got shape (2), strides (-1), offset 0 of 2 elements; stay inside",
             as_strided(v, {2}, {-1})),
      THROWS(ShapeError, "as_strided: the number of strides does not fit; got 1 for shape (2,2); give one an axis",
             as_strided(v, {2, 2}, {1})),
      THROWS(Error, "concatenate: there is no array; got {}; give one or more", concatenate({})),
      THROWS(ShapeError, "concatenate: shapes differ in another axis than 0; got (2,3) and (2); make the other axes equal",
             concatenate({m, v})),
      THROWS(ShapeError, "concatenate: axis out of range; got 0 for shape (); a 0-d array has no axes", concatenate({s, s})),
      THROWS(ShapeError, "stack: shapes differ; got (2,3) and (2); make them equal", stack({m, v})),
      THROWS(ShapeError, "stack: axis out of range; got 3 for shape (2,3); use -3 to 2", stack({m, m}, 3)),
      THROWS(ShapeError,
             "split: the axis does not divide into equal parts; got 2 parts of axis 1 of shape (2,3); use a divisor, or give indices",
             split(m, 2, 1)),
      THROWS(ShapeError, "pad: the number of widths does not fit; got 1 for shape (2,3); give {low, high} for each axis",
             pad(m, std::vector<std::pair<Dim, Dim>>{{1, 1}})),
      THROWS(ShapeError, "pad: a width is negative; got {-1, -1} for axis 0; use 0 or more, and slice to cut", pad(m, -1)),
      THROWS(ShapeError, "pad: the value is not 0-d; got shape (2); give one number", pad(m, 1, v)),
  });
}

TEST(Errors, indexing) {
  run({
      THROWS(IndexError, "take: index out of range; got 2 for axis 0 of shape (2,3); use -2 to 1", take(m, 2, 0)),
      THROWS(IndexError, "take: index out of range; got -7 for shape (2,3) flattened; use -6 to 5", take(m, -7)),
      THROWS(DtypeError, "take: the index is not an integer; got float32; use an integer", take(m, 1.5)),
      THROWS(DtypeError, "take: indices are not integers; got float32; convert with astype first", take(m, v)),
      THROWS(IndexError, "take: the axis has no elements; got axis 1 of shape (2,0); give an array with elements", take(e, Array({0}), 1)),
      THROWS(IndexError, "take: the axis has no elements; got shape (2,0) flattened; give an array with elements", take(e, Array({0}))),
      THROWS(ShapeError, "take_along_axis: the arrays have different numbers of axes; got (2,3) and (1); reshape the indices",
             take_along_axis(m, Array({0}), 0)),
      THROWS(ShapeError, "take_along_axis: shapes cannot be broadcast; got (2,1) and (3,1); make the axes equal or 1",
             take_along_axis(m, Array({{0}, {0}, {0}}), 1)),
      THROWS(DtypeError, "scatter_add: indices are not integers; got float32; convert with astype first", scatter_add(m, v, m, 0)),
      THROWS(ShapeError, "scatter_add: axis out of range; got 2 for shape (2,3); use -2 to 1", scatter_add(m, Array({0}), m, 2)),
      THROWS(
          ShapeError,
          "scatter_add: updates have not the shape of the indices and of a with size 1 on the axis; got (2,3) for indices (2) and a (2,3) "
          "along 0; reshape them to (2,1,3)",
          scatter_add(m, Array({0, 1}), m, 0)),
      THROWS(ShapeError, "scatter_add_axis: the arrays have different numbers of axes; got (2,3) and (1); reshape the indices",
             scatter_add_axis(m, Array({0}), 1, 0)),
      THROWS(ShapeError, "put_along_axis: the indices do not broadcast to the places; got (2,1) for (1,1); make their axes equal or 1",
             put_along_axis(ones({1, 3}), Array({{0}, {0}}), 1, 1)),
      THROWS(ShapeError, "put_along_axis: the values do not broadcast to the places; got (2,2) for (2,1); make their axes equal or 1",
             put_along_axis(m, Array({{0}, {0}}), zeros({2, 2}), 1)),
      THROWS(DtypeError, "put_along_axis: indices are not integers; got float32; convert with astype first", put_along_axis(v, v, 1, 0)),
      THROWS(DtypeError, "one_hot: indices are not integers; got bool; convert with astype first", one_hot(b, 2)),
  });
}

TEST(Errors, reductions) {
  run({
      THROWS(ShapeError, "sum: axis out of range; got 2 for shape (2,3); use -2 to 1", sum(m, 2)),
      THROWS(ShapeError, "mean: axis out of range; got 0 for shape (); a 0-d array has no axes", mean(s, 0)),
      THROWS(ShapeError, "prod: an axis is given twice; got axis 1 for shape (2,3); give each axis once", prod(m, {1, -1})),
      THROWS(ShapeError, "max: there are no elements along the axes; got shape (2,0); give an array with elements", max(e, 1)),
      THROWS(ShapeError, "argmin: there are no elements along the axes; got shape (2,0); give an array with elements", argmin(e)),
      THROWS(ShapeError, "logsumexp: there are no elements along the axes; got shape (2,0); give an array with elements", logsumexp(e)),
      THROWS(DtypeError, "max: complex numbers have no order; got complex64; take its real() or imag() first", max(c)),
      THROWS(DtypeError, "std: does not take complex64; got complex64; take its real() or imag() first", sinter::std(c)),
      THROWS(DtypeError, "softmax: does not take complex64; got complex64; take its real() or imag() first", softmax(c)),
  });
}

TEST(Errors, cumulative) {
  run({
      THROWS(ShapeError, "cumsum: axis out of range; got 2 for shape (2,3); use -2 to 1", cumsum(m, 2)),
      THROWS(ShapeError, "cumprod: axis out of range; got 0 for shape (); a 0-d array has no axes", cumprod(s, 0)),
      THROWS(Error, "cumsum: the array is unset; got an array that was default constructed or moved from; assign a value first",
             cumsum(Array())),
      THROWS(DtypeError, "cummax: complex numbers have no order; got complex64; take its real() or imag() first", cummax(c)),
      THROWS(DtypeError, "cummin: complex numbers have no order; got complex64; take its real() or imag() first", cummin(c)),
      THROWS(DtypeError, "logcumsumexp: does not take complex64; got complex64; take its real() or imag() first", logcumsumexp(c)),
      THROWS(ShapeError, "logcumsumexp: axis out of range; got -3 for shape (2,3); use -2 to 1", logcumsumexp(m, -3)),
  });
}

TEST(Errors, sorting) {
  run({
      THROWS(ShapeError, "sort: axis out of range; got 2 for shape (2,3); use -2 to 1", sort(m, 2)),
      THROWS(ShapeError, "argsort: axis out of range; got 0 for shape (); a 0-d array has no axes", argsort(s, 0)),
      THROWS(DtypeError, "sort: complex numbers have no order; got complex64; take its real() or imag() first", sort(c)),
      THROWS(Error, "argsort: the array is unset; got an array that was default constructed or moved from; assign a value first",
             argsort(Array())),
      THROWS(ShapeError, "permutation: axis out of range; got 2 for shape (2,3); use -2 to 1", random::permutation(m, 2)),
      THROWS(ShapeError, "permutation: a size is negative; got (-1); use sizes of 0 or more", random::permutation(-1)),
  });
}

TEST(Errors, products) {
  run({
      THROWS(
          ShapeError,
          "matmul: the inner sizes differ; got (2,3) and (2,3); make the last axis of the first equal to the second to last of the second",
          matmul(m, m)),
      THROWS(ShapeError,
             "matmul: the inner sizes differ; got (2,3) and (2); make the last axis of the first equal to the second to last of the second",
             matmul(m, v)),
      THROWS(ShapeError, "matmul: an operand is 0-d; got () and (2,3); use multiply", matmul(s, m)),
      THROWS(ShapeError, "matmul: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1",
             matmul(zeros({2, 1, 1}), zeros({3, 1, 1}))),
      THROWS(DtypeError, "matmul: takes numbers, not bool; got bool and bool; convert with astype first", matmul(b, b)),
      THROWS(DtypeError, "matmul: does not take complex64; got complex64 and complex64; multiply real and imaginary parts",
             matmul(full({1}, c), full({1}, c))),
      THROWS(ShapeError, "addmm: shapes cannot be broadcast; got (3) and (2,2); make the axes equal or 1",
             addmm(zeros({3}), zeros({2, 2}), zeros({2, 2}))),
      THROWS(ShapeError, "addmm: the addend does not broadcast to the product; got (2,2) and (1,2); make its axes equal or 1",
             addmm(zeros({2, 2}), zeros({1, 2}), zeros({2, 2}))),
  });
}

TEST(Errors, linalg) {
  run({
      THROWS(ShapeError, "solve: the array has fewer than 2 axes; got shape (2); give a matrix", linalg::solve(v, v)),
      THROWS(ShapeError, "solve: the matrix is not square; got shape (2,3); make the last two axes equal", linalg::solve(m, v)),
      THROWS(ShapeError, "solve: the right side has not the rows of the matrix; got (2,2) and (3,1); use (2) or (...,2,k)",
             linalg::solve(eye(2), zeros({3, 1}))),
      THROWS(ShapeError, "solve: the right side has not the rows of the matrix; got (2,2) and (); use (2) or (...,2,k)",
             linalg::solve(eye(2), s)),
      THROWS(ShapeError, "solve: shapes cannot be broadcast; got (2) and (3); make the axes equal or 1",
             linalg::solve(zeros({2, 1, 1}), zeros({3, 1, 1}))),
      THROWS(DtypeError, "solve: takes numbers, not bool; got bool; convert with astype first", linalg::solve(eye(2, {}, 0, bool_), b)),
      THROWS(Error, "solve: the array is unset; got an array that was default constructed or moved from; assign a value first",
             linalg::solve(eye(2), Array())),
      THROWS(ShapeError, "inv: the matrix is not square; got shape (2,3); make the last two axes equal", linalg::inv(m)),
      THROWS(DtypeError, "inv: takes numbers, not bool; got bool; convert with astype first", linalg::inv(eye(2, {}, 0, bool_))),
  });
}

TEST(Errors, windows) {
  const Array x = zeros({2, 5, 4, 3}), w = zeros({6, 3, 3, 3});
  run({
      THROWS(ShapeError, "conv2d: the input has not 4 axes; got (2,3); use (batch, height, width, channels)", conv2d(m, w)),
      THROWS(ShapeError, "conv1d: the weight has not 3 axes; got (2,3); use (out, length, channels / groups)", conv1d(zeros({1, 2, 3}), m)),
      THROWS(ShapeError,
             "conv2d: stride, padding, dilation or groups out of range; got (0,1), (0,0), (1,1) and 1; use positive numbers, "
             "and padding from 0",
             conv2d(x, w, {0, 1})),
      THROWS(ShapeError,
             "conv2d: stride, padding, dilation or groups out of range; got (1,1), (-1,-1), (1,1) and 1; use positive numbers, "
             "and padding from 0",
             conv2d(x, w, 1, -1)),
      THROWS(ShapeError,
             "conv2d: channels and groups do not fit; got input (2,5,4,3), weight (6,3,3,3) and 3 groups; the weight's last "
             "axis is the input's by groups, and its first a multiple of groups",
             conv2d(x, w, 1, 0, 1, 3)),
      THROWS(ShapeError,
             "conv2d: the kernel does not fit into the padded input; got input (2,5,4,3), weight (6,3,3,3), padding (0,0) and "
             "dilation (3,3); use a smaller kernel of size 1 at least, or pad more",
             conv2d(x, w, 1, 0, 3)),
      THROWS(ShapeError, "conv3d: the input has not 5 axes; got (2,5,4,3); use (batch, depth, height, width, channels)", conv3d(x, w)),
      THROWS(Error, "conv2d: the array is unset; got an array that was default constructed or moved from; assign a value first",
             conv2d(x, Array())),
      THROWS(ShapeError, "max_pool2d: x has not 4 axes; got (2); use (batch, height, width, channels)", max_pool2d(v, 2)),
      THROWS(ShapeError,
             "avg_pool2d: kernel, stride or padding out of range; got (2,2), (2,2) and (2,2); use positive numbers, and "
             "padding below the kernel's size",
             avg_pool2d(x, 2, {}, 2)),
      THROWS(ShapeError,
             "max_pool2d: the kernel does not fit into the padded input; got (6,1) for (2,5,4,3) with padding (0,0); use a "
             "smaller kernel, or pad more",
             max_pool2d(x, {6, 1})),
  });
}

TEST(Errors, network) {
  const Array q = zeros({1, 4, 3, 8}), k = zeros({1, 3, 3, 8});
  run({
      THROWS(ShapeError, "layer_norm: weight or bias does not fit the last axis; got (2) for x (2,3); use shape (3)", layer_norm(m, v)),
      THROWS(DtypeError, "rms_norm: does not take complex64; got complex64; take its real() or imag() first", rms_norm(c + v)),
      THROWS(ShapeError, "layer_norm: x is 0-d; got (); give it an axis", layer_norm(s)),
      THROWS(ShapeError, "rope: the features to turn are no pairs of x's; got dims 3 for x (2,3); use an even number up to 3",
             rope(m * 1.0, 3)),
      THROWS(DtypeError, "rope: x is not floating; got int32; convert with astype first", rope(m, 2)),
      THROWS(ShapeError, "rope: the offset does not fit the first axis; got (3) for x (2,3); give one, or 2",
             rope(m * 1.0, 2, false, 10000, 1, zeros({3}))),
      THROWS(ShapeError,
             "scaled_dot_product_attention: queries, keys and values do not fit; got (1,4,3,8), (1,3,3,8) and (1,3,3,8); make batches "
             "equal, keys' features those of queries, keys and values equal up to the last axis, and heads a multiple of theirs",
             scaled_dot_product_attention(q, k, k, 1)),
      THROWS(
          ShapeError,
          "scaled_dot_product_attention: the mask does not broadcast to the scores; got (2,4,3,3) for (1,4,3,3); make its axes equal or 1",
          scaled_dot_product_attention(q, q, q, 1, zeros({2, 4, 3, 3}))),
      THROWS(Error, "scaled_dot_product_attention: unknown mask_mode; got \"no\"; use \"\", \"causal\" or \"array\" with a mask",
             scaled_dot_product_attention(q, q, q, 1, "no")),
      THROWS(ShapeError,
             "cross_entropy: the targets' shape does not fit; got (2,3) and (3); give a class for each element off the axis, or "
             "probabilities of the first one's shape",
             cross_entropy(m, zeros({3}, int32))),
      THROWS(ShapeError, "cross_entropy: the probabilities' shape differs from the logits'; got (2) and (2,3); make them equal",
             cross_entropy(m, v)),
      THROWS(DtypeError, "nll_loss: targets are neither classes nor probabilities; got bool; convert with astype first", nll_loss(m, b)),
      THROWS(Error, "cross_entropy: label_smoothing is out of range; got 1; use 0 to below 1", cross_entropy(m, v, {.label_smoothing = 1})),
      THROWS(ShapeError, "mse_loss: shapes differ; got (2,3) and (2); make them equal", mse_loss(m, v)),
      THROWS(Error, "huber_loss: delta is not positive; got 0; use a positive number", huber_loss(v, v, 0)),
      THROWS(ShapeError, "binary_cross_entropy: the weights do not broadcast to the losses; got (3,2) for (2); make their axes equal or 1",
             binary_cross_entropy(v, v, zeros({3, 2}))),
  });
}

TEST(Errors, random) {
  run({
      THROWS(DtypeError, "randint: the dtype is not an integer; got float32; use uniform for numbers", random::randint(0, 2, {2}, float32)),
      THROWS(DtypeError, "bernoulli: the dtype is not floating; got int32; use float32, float64, float16 or bfloat16",
             random::bernoulli(1, {2})),
      THROWS(ShapeError, "bernoulli: p does not broadcast to the shape; got (3,2) for (2); make its axes equal or 1",
             random::bernoulli(zeros({3, 2}), {2})),
      THROWS(DtypeError, "categorical: the dtype is not floating; got int32; use float32, float64, float16 or bfloat16",
             random::categorical(m)),
      THROWS(ShapeError, "categorical: there is nothing to choose from; got axis 1 of shape (2,0); give an axis with elements",
             random::categorical(e)),
      THROWS(ShapeError, "categorical: there is nothing to choose from; got axis 1 of shape (2,0); give an axis with elements",
             random::categorical(e, -1, 3)),
      THROWS(Error, "split: the key is not a uint32 array of shape (2); got float32 of shape (2); make one with key(seed) or split",
             random::split(v)),
      THROWS(Error, "bits: the key is not a uint32 array of shape (2); got uint32 of shape (3); make one with key(seed) or split",
             random::bits({2}, 4, zeros({3}, uint32))),
      THROWS(Error, "bits: unknown width; got 3; use 1, 2 or 4 bytes", random::bits({2}, 3)),
      THROWS(DtypeError, "uniform: the dtype is not floating; got int32; use float32, float64, float16 or bfloat16",
             random::uniform({2}, int32)),
      THROWS(DtypeError, "normal: the dtype is not floating; got complex64; use float32, float64, float16 or bfloat16",
             random::normal({2}, complex64)),
      THROWS(ShapeError, "uniform: the bounds do not broadcast to the shape; got (2) and () for (1); make their axes equal or 1",
             random::uniform(v, 1, {1})),
      THROWS(ShapeError, "uniform: a size is negative; got (-1); use sizes of 0 or more", random::uniform({-1})),
  });
}

TEST(Errors, device_and_memory) {
  const std::string nowhere[] = {"/nowhere/a.so", "/nowhere/b.so"};
  run({
      THROWS(
          DeviceError,
          "codegen: libsinter_codegen.so cannot be opened; got /nowhere/a.so: cannot open shared object file: No such file or directory; "
          "/nowhere/b.so: cannot open shared object file: No such file or directory; install the library's own beside it",
          (backends::open_codegen(nowhere), Array())),
      THROWS(OutOfMemory, "allocate: the size is beyond any memory; got 4503599627370496 bytes; check the shape",
             zeros({std::int64_t{1} << 50}).eval()),
  });
}

TEST(Errors, control_flow) {
  const std::int64_t far = std::int64_t{1} << 32;
  auto step = [](const Array& i, const Array& x) { return x + i; };
  run({
      THROWS(Error,
             "fori_loop: a bound does not fit int32, the dtype of the index; got 0 and 4294967296; use while_loop with an index of int64",
             fori_loop(0, far, step, s)),
      THROWS(Error,
             "fori_loop: a bound does not fit int32, the dtype of the index; got -4294967296 and 3; use while_loop with an index of int64",
             fori_loop(-far, 3, step, s)),
      THROWS(Error,
             "fori_loop: a bound does not fit int32, the dtype of the index; got 0 and 18446744073709551615; use while_loop with an index "
             "of int64",
             fori_loop(0, ~std::uint64_t{0}, step, s)),
      THROWS(DtypeError, "cond: the branches give different arrays; got float32[] and int32[] as array 0; give the same shape and dtype",
             cond(
                 true, [](const Array& x) { return x; }, [](const Array& x) { return astype(x, int32); }, s)),
      THROWS(DtypeError, "while_loop: the condition gives one bool; got float32[]; compare, or reduce with any or all",
             while_loop([](const Array& x) { return x; }, [](const Array& x) { return x; }, s)),
      THROWS(DtypeError,
             "scan: array 0 of the state changes its shape or dtype in a step; got int32[] before and float32[] after it; keep both, for "
             "example with astype on the first",
             scan([](const Array& a, const Array& x) { return std::pair(a + x, x); }, Array(0), v)),
      THROWS(DtypeError,
             "custom_vjp: the rule gives an array that does not fit; got float64[2] for float32[2]; give one of the same shape and dtype",
             grad([](const Array& x) {
               return sum(custom_vjp([](const Array& a) { return a * 2; }, [](const Array& a) { return std::pair(a * 2, a); },
                                     [](const Array&, const Array& g) { return astype(g, float64); })(x));
             })(v)),
  });
}

TEST(Errors, io) {
  run({
      THROWS(IoError, "load_idx: cannot open the file; got \"/nowhere/x.gz\"; check that it exists and is readable",
             load_idx("/nowhere/x.gz")),
      THROWS(Error, "save_safetensors: an array is unset; got \"a\", default constructed or moved from; assign a value first",
             save_safetensors("/nowhere/x", {{"a", Array()}})),
      THROWS(ShapeError, "Batches: an array has no axes; got shape (); give it a first axis, that of the elements",
             data::Batches({v, s}, 4)),
      THROWS(Error,
             "set_printoptions: an option is out of range; got precision 0, threshold 6, edgeitems 3; use a precision of 1 to 100, and 0 "
             "or more for the others",
             set_printoptions({.precision = 0, .threshold = 6, .edgeitems = 3})),
  });
}

}  // namespace
