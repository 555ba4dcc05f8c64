// Graphs over every structured operation, for the tests of this folder. A case is a line. Inputs are float64 unless they are indices, so
// that differences are good derivatives.
#pragma once
#include <ostream>

namespace sinter::tests {

struct GraphCase {
  const char* name;
  const char* text;
  friend void PrintTo(const GraphCase& c, std::ostream* out) { *out << c.name; }
};

inline const GraphCase kGraphCases[] = {
    {"input", "graph g(%0: float64[3]) { return %0, %0 }"},
    {"constant", "graph g(%0: float64[2]) { %1 = constant {bits=3, 4} : float64[2] %2 = multiply %0, %1 : float64[2] return %2, %1 }"},
    {"arange", R"(graph g(%0: float64[], %1: float64[]) { %2 = arange %0, %1 {axis=1} : float64[2,5] %3 = exp
       %2 : float64[2,5] return %3 })"},
    {"random_bits", R"(graph g(%0: uint32[2], %1: float64[2,3]) { %2 = random_bits %0 {width=4} : uint32[2,3]
       %3 = astype %2 {dtype=float64} : float64[2,3] %4 = multiply %3, %1 : float64[2,3] %5 = random_bits %0 {width=1} : uint8[7]
       return %4, %5 })"},
    {"random_bits_2d_keys", "graph g(%0: uint32[3,2]) { %1 = random_bits %0 {width=2} : uint16[3,5] return %1 }"},
    {"astype", R"(graph g(%0: float64[4]) { %1 = astype %0 {dtype=int32} : int32[4] %2 = astype %1 {dtype=float64} : float64[4]
       %3 = multiply %0, %2 : float64[4] return %3, %1 })"},
    {"copy", R"(graph g(%0: float64[3], %1: float64[]) { %2 = copy %0 : float64[3] %3 = copy %1 : float64[2,3] %4 = exp
       %3 : float64[2,3] return %2, %4 })"},
    {"reshape", "graph g(%0: float64[2,3]) { %1 = reshape %0 {shape=3,2} : float64[3,2] %2 = exp %1 : float64[3,2] return %2 }"},
    {"transpose", R"(graph g(%0: float64[2,3,4]) { %1 = transpose %0 {axes=2,0,1} : float64[4,2,3] %2 = exp
       %1 : float64[4,2,3] return %2 })"},
    {"broadcast", R"(graph g(%0: float64[2,1], %1: float64[]) { %2 = broadcast_to %0 {shape=3,2,4} : float64[3,2,4]
       %3 = broadcast_to %1 {shape=3,2,4} : float64[3,2,4] %4 = multiply %2, %3 : float64[3,2,4] return %4 })"},
    {"slice", R"(graph g(%0: float64[7,5]) { %1 = slice %0 {start=1,0 size=4,5 step=1,1} : float64[4,5] %2 = exp
       %1 : float64[4,5] return %2 })"},
    {"slice_steps", R"(graph g(%0: float64[7,5,3]) { %1 = slice %0 {start=6,1,2 size=3,2,2 step=-3,2,-1} : float64[3,2,2]
       %2 = exp %1 : float64[3,2,2] return %2 })"},
    {"slice_one", R"(graph g(%0: float64[7]) { %1 = slice %0 {start=3 size=1 step=5} : float64[1] %2 = slice
       %0 {start=3 size=0 step=1} : float64[0]
       %3 = exp %1 : float64[1] return %3, %2 })"},
    {"as_strided", R"(graph g(%0: float64[2,6]) { %1 = as_strided %0 {shape=4,3 strides=2,1 offset=1} : float64[4,3]
       %2 = exp %1 : float64[4,3] return %2 })"},
    // Windows: that overlap, in whole steps and not; with gaps; over two axes, in any order of the result's; in one place of an axis.
    {"as_strided_windows", R"(graph g(%0: float64[2,9]) {
       %1 = as_strided %0 {shape=4,2,3 strides=1,9,2 offset=1} : float64[4,2,3] %2 = exp %1 : float64[4,2,3]
       %3 = as_strided %0 {shape=2,4,3 strides=9,2,1 offset=0} : float64[2,4,3] %4 = exp %3 : float64[2,4,3]
       %5 = as_strided %0 {shape=2,3,2 strides=9,3,1 offset=0} : float64[2,3,2] %6 = exp %5 : float64[2,3,2]
       %7 = as_strided %0 {shape=5,4 strides=1,1 offset=10} : float64[5,4] %8 = exp %7 : float64[5,4]
       return %2, %4, %6, %8 })"},
    {"as_strided_windows_2d", R"(graph g(%0: float64[2,5,4,3]) {
       %1 = as_strided %0 {shape=3,2,2,2,2,3 strides=12,3,60,24,6,1 offset=0} : float64[3,2,2,2,2,3] %2 = exp %1 : float64[3,2,2,2,2,3]
       %3 = as_strided %0 {shape=2,1,2,3 strides=60,24,3,12 offset=19} : float64[2,1,2,3] %4 = exp %3 : float64[2,1,2,3]
       return %2, %4 })"},
    {"as_strided_backwards", R"(graph g(%0: float64[6]) { %1 = as_strided %0 {shape=2,3 strides=0,-2 offset=5} : float64[2,3]
       %2 = exp %1 : float64[2,3] return %2 })"},
    {"concatenate", R"(graph g(%0: float64[2,3], %1: float64[2,1]) { %2 = concatenate %0, %1, %0 {axis=1} : float64[2,7]
       %3 = exp %2 : float64[2,7] return %3 })"},
    {"pad", R"(graph g(%0: float64[2,3], %1: float64[]) { %2 = pad %0, %1 {low=1,0 high=0,2} : float64[3,5] %3 = exp
       %2 : float64[3,5] return %3 })"},
    {"take", R"(graph g(%0: float64[4,3], %1: int32[2,3]) { %2 = take %0, %1 {axis=0} : float64[2,3,3] %3 = take %0,
       %1 {axis=1} : float64[4,2,3]
       %4 = exp %2 : float64[2,3,3] %5 = exp %3 : float64[4,2,3] return %4, %5 })"},
    {"take_one", "graph g(%0: float64[4,3], %1: uint8[]) { %2 = take %0, %1 {axis=0} : float64[3] %3 = exp %2 : float64[3] return %3 }"},
    {"take_along", R"(graph g(%0: float64[4,3], %1: int64[4,5]) { %2 = take_along_axis %0, %1 {axis=1} : float64[4,5]
       %3 = exp %2 : float64[4,5] return %3 })"},
    {"scatter_add", R"(graph g(%0: float64[3,4], %1: int32[5,4], %2: float64[5,4]) { %3 = scatter_add %0, %1, %2 {axis=0} : float64[3,4]
       %4 = exp %3 : float64[3,4] return %4 })"},
    {"scatter_add_inner", R"(graph g(%0: float64[3,4], %1: uint8[3,2], %2: float64[3,2]) { %3 = scatter_add %0, %1,
       %2 {axis=1} : float64[3,4]
       %4 = exp %3 : float64[3,4] return %4 })"},
    {"put_along", R"(graph g(%0: float64[3,4], %1: int32[5,4], %2: float64[5,4]) {
       %3 = put_along_axis %0, %1, %2 {axis=0} : float64[3,4] %4 = exp %3 : float64[3,4] return %4 })"},
    {"put_along_inner", R"(graph g(%0: float64[3,4], %1: uint8[3,2], %2: float64[3,2]) {
       %3 = put_along_axis %0, %1, %2 {axis=1} : float64[3,4] %4 = exp %3 : float64[3,4] return %4 })"},
    {"sum", R"(graph g(%0: float64[2,3,4]) { %1 = sum %0 {dtype=float64 axes=0,2} : float64[3] %2 = exp %1 : float64[3]
       %3 = sum %0 {dtype=float64 axes=0,1,2} : float64[] %4 = sum %0 {dtype=float64 axes=1} : float64[2,4] return %2, %3, %4 })"},
    {"prod", R"(graph g(%0: float64[2,3,5]) { %1 = prod %0 {dtype=float64 axes=2} : float64[2,3] %2 = prod
       %0 {dtype=float64 axes=0,2} : float64[3]
       %3 = prod %0 {dtype=float64 axes=1} : float64[2,5] %4 = prod %0 {dtype=float64 axes=0,1,2} : float64[] return %1, %2, %3, %4 })"},
    {"cumsum", R"(graph g(%0: float64[2,3,4]) { %1 = cumsum %0 {axis=0 reverse=0 inclusive=1} : float64[2,3,4] %2 = exp %1 : float64[2,3,4]
       %3 = cumsum %0 {axis=1 reverse=1 inclusive=0} : float64[2,3,4] %4 = cumsum %0 {axis=2 reverse=0 inclusive=0} : float64[2,3,4]
       return %2, %3, %4 })"},
    {"cumprod", R"(graph g(%0: float64[2,3,4]) { %1 = cumprod %0 {axis=2 reverse=0 inclusive=1} : float64[2,3,4]
       %2 = cumprod %0 {axis=2 reverse=1 inclusive=0} : float64[2,3,4] %3 = cumprod %0 {axis=1 reverse=1 inclusive=1} : float64[2,3,4]
       %4 = cumprod %0 {axis=0 reverse=0 inclusive=0} : float64[2,3,4] return %1, %2, %3, %4 })"},
    {"cumprod_one", R"(graph g(%0: float64[1,2]) { %1 = cumprod %0 {axis=0 reverse=0 inclusive=0} : float64[1,2]
       %2 = cumprod %0 {axis=0 reverse=0 inclusive=1} : float64[1,2] return %1, %2 })"},
    {"cummax_cummin", R"(graph g(%0: float64[3,7]) { %1 = cummax %0 {axis=1 reverse=0 inclusive=1} : float64[3,7]
       %2 = exp %1 : float64[3,7] %3 = cummin %0 {axis=1 reverse=1 inclusive=1} : float64[3,7] %4 = exp %3 : float64[3,7]
       %5 = cummin %0 {axis=0 reverse=0 inclusive=0} : float64[3,7] %6 = arctan %5 : float64[3,7]
       %7 = cummax %0 {axis=1 reverse=1 inclusive=0} : float64[3,7] %8 = arctan %7 : float64[3,7] return %2, %4, %6, %8 })"},
    {"logcumsumexp", R"(graph g(%0: float64[3,5]) { %1 = logcumsumexp %0 {axis=1 reverse=0 inclusive=1} : float64[3,5]
       %2 = square %1 : float64[3,5] %3 = logcumsumexp %0 {axis=0 reverse=1 inclusive=0} : float64[3,5] %4 = arctan %3 : float64[3,5]
       return %2, %4 })"},
    {"linear_recurrence", R"(graph g(%0: float64[3,5], %1: float64[3,5]) { %2 = linear_recurrence %0, %1 {axis=1 reverse=0} : float64[3,5]
       %3 = linear_recurrence %0, %1 {axis=0 reverse=1} : float64[3,5] return %2, %3 })"},
    {"max_min", R"(graph g(%0: float64[3,5]) { %1 = max %0 {dtype=float64 axes=1} : float64[3] %2 = min
       %0 {dtype=float64 axes=0,1} : float64[]
       %3 = exp %1 : float64[3] return %3, %2 })"},
    {"all_any", R"(graph g(%0: bool[3,5]) { %1 = all %0 {dtype=bool axes=1} : bool[3] %2 = any
       %0 {dtype=bool axes=0} : bool[5] return %1, %2 })"},
    {"argmax", R"(graph g(%0: float64[3,5]) { %1 = argmax %0 {dtype=uint32 axes=1} : uint32[3] %2 = argmin
       %0 {dtype=uint32 axes=0,1} : uint32[]
       %3 = argmax %0 {dtype=uint32 axes=0} : uint32[5] return %1, %2, %3 })"},
    {"matmul", "graph g(%0: float64[3,4], %1: float64[4,2]) { %2 = matmul %0, %1 : float64[3,2] %3 = exp %2 : float64[3,2] return %3 }"},
    {"matmul_batch", R"(graph g(%0: float64[2,3,4], %1: float64[2,4,2]) { %2 = matmul %0, %1 : float64[2,3,2] %3 = tanh
       %2 : float64[2,3,2]
       return %3 })"},
    {"addmm", R"(graph g(%0: float64[3,2], %1: float64[3,4], %2: float64[4,2]) { %3 = addmm %0, %1, %2 : float64[3,2] %4 = tanh
       %3 : float64[3,2]
       return %4 })"},
    // Random numbers with 6 more on the diagonal: far from singular.
    {"solve", R"(graph g(%0: float64[3,3], %1: float64[3,2]) { %2 = constant {bits=6,0,0,0,6,0,0,0,6} : float64[3,3]
       %3 = add %0, %2 : float64[3,3] %4 = solve %3, %1 : float64[3,2] %5 = tanh %4 : float64[3,2] return %5 })"},
    {"solve_batch", R"(graph g(%0: float64[2,2,2], %1: float64[2,2,1]) { %2 = constant {bits=6,1,0,-6} : float64[2,2]
       %3 = broadcast_to %2 {shape=2,2,2} : float64[2,2,2] %4 = add %0, %3 : float64[2,2,2] %5 = solve %4, %1 : float64[2,2,1]
       return %5, %4 })"},
    {"sort", R"(graph g(%0: float64[3,5]) { %1 = argsort %0 {axis=1} : uint32[3,5] %2 = take_along_axis %0, %1 {axis=1} : float64[3,5]
       %3 = exp %2 : float64[3,5] %4 = argsort %0 {axis=0} : uint32[3,5] return %3, %1, %4 })"},
    {"conv", R"(graph g(%0: float64[2,4,2], %1: float64[3,2,2]) {
       %2 = conv %0, %1 {groups=1 axes=4,2,2,1,1,1} : float64[2,3,3] %3 = tanh %2 : float64[2,3,3] return %3 })"},
    {"conv_input", R"(graph g(%0: float64[2,2,1,4], %1: float64[4,2,2,1]) {
       %2 = conv_input %0, %1 {groups=2 axes=4,2,2,0,0,1,2,2,1,1,0,2} : float64[2,4,2,2] %3 = tanh %2 : float64[2,4,2,2] return %3 })"},
    {"conv_weight", R"(graph g(%0: float64[2,4,2], %1: float64[2,2,3]) {
       %2 = conv_weight %0, %1 {groups=1 axes=4,2,2,0,1,1} : float64[3,2,2] %3 = tanh %2 : float64[3,2,2] return %3 })"},
    {"scalars", R"(graph g(%0: float64[], %1: float64[3], %2: float64[]) { %3 = multiply %0, %1 : float64[3] %4 = multiply %0,
       %2 : float64[]
       %5 = fma %1, %2, %0 : float64[3] return %3, %4, %5 })"},
    {"used_twice", R"(graph g(%0: float64[3]) { %1 = multiply %0, %0 : float64[3] %2 = multiply %1, %0 : float64[3] %3 = exp
       %1 : float64[3]
       return %2, %3, %0 })"},
    {"softmax", R"(graph g(%0: float64[2,5]) { %1 = max %0 {dtype=float64 axes=1} : float64[2] %2 = reshape %1 {shape=2,1} : float64[2,1]
       %3 = broadcast_to %2 {shape=2,5} : float64[2,5] %4 = subtract %0, %3 : float64[2,5] %5 = exp %4 : float64[2,5]
       %6 = sum %5 {dtype=float64 axes=1} : float64[2] %7 = reshape %6 {shape=2,1} : float64[2,1]
       %8 = broadcast_to %7 {shape=2,5} : float64[2,5] %9 = divide %5, %8 : float64[2,5] return %9 })"},
    {"checkpoint", R"(graph g(%0: float64[3], %1: float64[3]) { %2 = checkpoint %0, %1 : bool[0]
         graph body(%0: float64[3], %1: float64[3]) { %2 = sin %0 : float64[3] %3 = multiply %2, %1 : float64[3] return %3, %2 }
       %3 = get %2 {index=0} : float64[3] %4 = get %2 {index=1} : float64[3] %5 = exp %3 : float64[3] return %5, %4 })"},
    {"cond_yes", R"(graph g(%0: float64[3], %1: float64[3]) { %2 = constant {bits=true} : bool[] %3 = cond %2, %0, %1 : bool[0]
         graph yes(%0: float64[3], %1: float64[3]) { %2 = multiply %0, %1 : float64[3] return %2, %0 }
         graph no(%0: float64[3], %1: float64[3]) { return %1, %1 }
       %4 = get %3 {index=0} : float64[3] %5 = get %3 {index=1} : float64[3] %6 = exp %4 : float64[3] return %6, %5 })"},
    {"cond_by_value", R"(graph g(%0: float64[3], %1: float64[]) { %2 = constant {bits=0} : float64[] %3 = less %1, %2 : bool[]
       %4 = cond %3, %0, %1 : bool[0]
         graph yes(%0: float64[3], %1: float64[]) { %2 = multiply %0, %1 : float64[3] return %2 }
         graph no(%0: float64[3], %1: float64[]) { %2 = add %0, %1 : float64[3] %3 = sin %2 : float64[3] return %3 }
       %5 = get %4 {index=0} : float64[3] return %5 })"},
    {"scan", R"(graph g(%0: float64[2], %1: float64[2], %2: float64[3,2]) { %3 = scan %0, %1, %2 {constants=1 carries=1 length=3
         reverse=0} : bool[0]
         graph step(%0: float64[2], %1: float64[2], %2: float64[2]) { %3 = multiply %0, %1 : float64[2] %4 = add %3, %2 : float64[2]
           %5 = tanh %4 : float64[2] %6 = exp %2 : float64[2] return %5, %6 }
       %4 = get %3 {index=0} : float64[2] %5 = get %3 {index=1} : float64[3,2] %6 = get %3 {index=2} : float64[3,2]
       %7 = sin %6 : float64[3,2] return %4, %5, %7 })"},
    {"scan_back", R"(graph g(%0: float64[], %1: float64[4], %2: int32[4]) { %3 = constant {bits=3} : int32[] %4 = scan %0, %3, %0, %1,
         %2 {constants=1 carries=2 length=4 reverse=1} : bool[0]
         graph step(%0: float64[], %1: int32[], %2: float64[], %3: float64[], %4: int32[]) { %5 = add %1, %4 : int32[]
           %6 = astype %5 {dtype=float64} : float64[] %7 = multiply %6, %3 : float64[] %8 = fma %2, %0, %7 : float64[]
           return %5, %8, %7, %5 }
       %5 = get %4 {index=1} : float64[] %6 = get %4 {index=2} : float64[4] %7 = get %4 {index=3} : int32[4]
       %8 = get %4 {index=0} : int32[] return %5, %6, %7, %8 })"},
    {"scan_of_nothing", R"(graph g(%0: float64[2], %1: float64[0,2]) { %2 = scan %0, %1 {constants=0 carries=1 length=0
         reverse=0} : bool[0]
         graph step(%0: float64[2], %1: float64[2]) { %2 = multiply %0, %1 : float64[2] return %2, %1 }
       %3 = get %2 {index=0} : float64[2] %4 = get %2 {index=1} : float64[0,2] %5 = exp %3 : float64[2] return %5, %4 })"},
    {"scan_in_scan", R"(graph g(%0: float64[], %1: float64[2,3]) { %2 = scan %0, %1 {constants=0 carries=1 length=2 reverse=0} : bool[0]
         graph step(%0: float64[], %1: float64[3]) { %2 = scan %0, %1 {constants=0 carries=1 length=3 reverse=1} : bool[0]
             graph inner(%0: float64[], %1: float64[]) { %2 = multiply %0, %1 : float64[] %3 = sin %2 : float64[] return %3, %2 }
           %3 = get %2 {index=0} : float64[] %4 = get %2 {index=1} : float64[3] return %3, %4 }
       %3 = get %2 {index=0} : float64[] %4 = get %2 {index=1} : float64[2,3] return %3, %4 })"},
    {"blocks", R"(graph g(%0: float64[2,5,3], %1: float64[2,4,3], %2: int32[1,5]) { %3 = blocks %0, %1, %2 {grid=1 sums=0
         windows=1,0,1,5,1,2,3,0,4,2,3,2,3,1,0,2,0,3,0,2,0,2} : bool[0]
         graph large(%0: float64[3,3], %1: float64[4,3], %2: int32[3]) { %3 = transpose %1 {axes=1,0} : float64[3,4]
           %4 = matmul %0, %3 : float64[3,4] %5 = tanh %4 : float64[3,4] %6 = matmul %5, %1 : float64[3,3]
           %7 = astype %2 {dtype=float64} : float64[3] %8 = reshape %7 {shape=3,1} : float64[3,1]
           %9 = broadcast_to %8 {shape=3,3} : float64[3,3] %10 = multiply %6, %9 : float64[3,3] return %10 }
         graph small(%0: float64[2,3], %1: float64[3,3], %2: int32[2]) { %3 = matmul %0, %1 : float64[2,3] %4 = sin %3 : float64[2,3]
           return %4 }
       %4 = get %3 {index=0} : float64[2,5,3] %5 = exp %4 : float64[2,5,3] return %5 })"},
    {"blocks_sums", R"(graph g(%0: float64[2,1,4], %1: float64[1,3,4,2]) { %2 = reshape %0 {shape=2,1,4,1} : float64[2,1,4,1]
       %3 = blocks %2, %1 {grid=2 sums=1 windows=1,0,4,4,2,0,2,0,4,0,2,0,4} : bool[0]
         graph part(%0: float64[2,1], %1: float64[4,2]) { %2 = broadcast_to %0 {shape=2,2} : float64[2,2]
           %3 = slice %1 {start=1,0 size=2,2 step=1,1} : float64[2,2] %4 = multiply %2, %3 : float64[2,2]
           %5 = sum %2 {dtype=float64 axes=0,1} : float64[] %6 = sin %1 : float64[4,2] %7 = broadcast_to %5 {shape=4,2} : float64[4,2]
           %8 = multiply %6, %7 : float64[4,2] return %4, %8 }
       %4 = get %3 {index=0} : float64[2,3,4,2] %5 = get %3 {index=1} : float64[2,3,4,2] %6 = exp %4 : float64[2,3,4,2]
       return %6, %5 })"},
    {"custom_jvp", R"(graph g(%0: float64[3], %1: float64[3]) { %2 = sin %0 : float64[3] %3 = custom_jvp %2, %0,
         %1 {outputs=1 arguments=1} : bool[0]
         graph rule(%0: float64[3], %1: float64[3], %2: float64[3]) { %3 = cos %0 : float64[3] %4 = multiply %3, %1 : float64[3]
           return %4 }
       %4 = get %3 {index=0} : float64[3] %5 = multiply %4, %1 : float64[3] return %5 })"},
    {"custom_vmap", R"(graph g(%0: float64[3]) { %1 = sin %0 : float64[3] %2 = custom_vmap %1, %0 {outputs=1 arguments=1} : bool[0]
         graph rule(%0: float64[0,3]) { return %0 }
         graph rule(%0: float64[1,3]) { %1 = sin %0 : float64[1,3] return %1 }
         graph rule(%0: float64[2,3]) { %1 = sin %0 : float64[2,3] return %1 }
         graph rule(%0: float64[3,3]) { %1 = sin %0 : float64[3,3] return %1 }
       %3 = get %2 {index=0} : float64[3] return %3 })"},
    {"debug_print", R"(graph g(%0: float64[3], %1: float64[3]) { %2 = debug_print %0, %1 {depth=-1 length=0 text=0} : bool[0]
       %3 = get %2 {index=0} : float64[3] %4 = exp %3 : float64[3] return %4, %1 })"},
    {"barrier", "graph g(%0: float64[3], %1: float64[3]) { %2 = barrier %0, %1 : float64[3] %3 = exp %2 : float64[3] return %3 }"},
    {"empty", R"(graph g(%0: float64[0,3]) { %1 = exp %0 : float64[0,3] %2 = sum %1 {dtype=float64 axes=0} : float64[3]
       %3 = prod %0 {dtype=float64 axes=0} : float64[3] %4 = cumprod %0 {axis=0 reverse=0 inclusive=1} : float64[0,3]
       %5 = cummax %0 {axis=1 reverse=1 inclusive=0} : float64[0,3] %6 = logcumsumexp %5 {axis=0 reverse=0 inclusive=1} : float64[0,3]
       %7 = linear_recurrence %4, %5 {axis=1 reverse=0} : float64[0,3] %8 = cumsum %7 {axis=0 reverse=0 inclusive=0} : float64[0,3]
       return %1, %2, %3, %6, %8 })"},
};

}  // namespace sinter::tests
