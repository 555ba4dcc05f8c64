// Graphs through lowering and plans: against graph::interpret, fused against unfused, and machine code against the interpreter, for
// inputs of several layouts. A case is a graph's text.
#include "support/graphs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/plan_file.h"

namespace {

using namespace sinter;
using graph::Graph;
using graph::Tensor;
using tests::Memory;

struct Case {
  const char* name;
  std::string text;
  double tolerance = 0;
  int kernels = 0;  // expected of the fused plan; 0: any
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// Products of few rows or columns of this dtype, both layouts of the matrix.
std::string few_rows(const std::string& dtype) {
  std::string text = R"(graph g(%0: T[3,41], %1: T[41,75], %2: T[75,41], %3: T[2,1,41], %4: T[2,41,5], %5: T[5]) {
       %6 = matmul %0, %1 : T[3,75]
       %7 = transpose %2 {axes=1,0} : T[41,75]
       %8 = matmul %0, %7 : T[3,75]
       %9 = transpose %0 {axes=1,0} : T[41,3]
       %10 = matmul %2, %9 : T[75,3]
       %11 = transpose %1 {axes=1,0} : T[75,41]
       %12 = matmul %11, %9 : T[75,3]
       %13 = matmul %3, %4 : T[2,1,5]
       %14 = transpose %4 {axes=0,2,1} : T[2,5,41]
       %15 = transpose %3 {axes=0,2,1} : T[2,41,1]
       %16 = matmul %14, %15 : T[2,5,1]
       %17 = reshape %5 {shape=5,1} : T[5,1]
       %18 = reshape %5 {shape=1,5} : T[1,5]
       %19 = matmul %18, %17 : T[1,1]
       return %6, %8, %10, %12, %13, %16, %19
     })";
  for (std::size_t at; (at = text.find(": T[")) != std::string::npos;) text.replace(at + 2, 1, dtype);
  return text;
}

const Case kCases[] = {
    {"expneg_add", R"(graph g(%0: float32[37], %1: float32[37]) {
       %2 = negative %0 : float32[37]
       %3 = exp %2 : float32[37]
       %4 = add %3, %1 : float32[37]
       return %4
     })",
     0, 1},
    {"rank3", R"(graph g(%0: float32[3,5,7], %1: float32[5,7]) {
       %2 = broadcast_to %1 {shape=3,5,7} : float32[3,5,7]
       %3 = multiply %0, %2 : float32[3,5,7]
       return %3
     })",
     0, 1},
    {"transposed", R"(graph g(%0: float32[9,5], %1: float32[5,9]) {
       %2 = transpose %0 {axes=1,0} : float32[5,9]
       %3 = add %2, %1 : float32[5,9]
       return %3
     })",
     0, 1},
    {"transposed_in_tiles", R"(graph g(%0: float32[37,53], %1: float32[53,37], %2: float32[53]) {
       %3 = transpose %0 {axes=1,0} : float32[53,37]
       %4 = add %3, %1 : float32[53,37]
       %5 = reshape %2 {shape=53,1} : float32[53,1]
       %6 = broadcast_to %5 {shape=53,37} : float32[53,37]
       %7 = multiply %4, %6 : float32[53,37]
       return %7, %4
     })",
     0, 1},
    {"tiles_of_several_dtypes", R"(graph g(%0: float16[3,20,40], %1: bool[3,20,40], %2: float64[3,20,40]) {
       %3 = transpose %0 {axes=0,2,1} : float16[3,40,20]
       %4 = transpose %1 {axes=0,2,1} : bool[3,40,20]
       %5 = transpose %2 {axes=0,2,1} : float64[3,40,20]
       %6 = negative %3 : float16[3,40,20]
       %7 = where %4, %3, %6 : float16[3,40,20]
       %8 = exp %5 : float64[3,40,20]
       return %7, %8
     })",
     0, 2},
    {"tiles_of_outer_axes", R"(graph g(%0: int32[33,5,18], %1: int32[18,5,33]) {
       %2 = transpose %0 {axes=2,1,0} : int32[18,5,33]
       %3 = add %2, %1 : int32[18,5,33]
       return %3
     })",
     0, 1},
    {"blocks", R"(graph g(%0: float32[2,3,5,4], %1: float32[2,1,7,4], %2: int32[1,1,5]) {
       %3 = blocks %0, %1, %2 {grid=2 sums=1 windows=1,0,1,5,7,1,2,3,0,7,2,3,2,3,0,7,1,0,2,0,4,0,2,0,2,0,4} : bool[0]
         graph large(%0: float32[3,4], %1: float32[7,4], %2: int32[3]) {
           %3 = transpose %1 {axes=1,0} : float32[4,7]
           %4 = matmul %0, %3 : float32[3,7]
           %5 = max %4 {dtype=float32 axes=1} : float32[3]
           %6 = reshape %5 {shape=3,1} : float32[3,1]
           %7 = broadcast_to %6 {shape=3,7} : float32[3,7]
           %8 = subtract %4, %7 : float32[3,7]
           %9 = exp %8 : float32[3,7]
           %10 = matmul %9, %1 : float32[3,4]
           %11 = transpose %9 {axes=1,0} : float32[7,3]
           %12 = matmul %11, %0 : float32[7,4]
           return %10, %12
         }
         graph small(%0: float32[2,4], %1: float32[4,4], %2: int32[2]) {
           %3 = astype %2 {dtype=float32} : float32[2]
           %4 = reshape %3 {shape=2,1} : float32[2,1]
           %5 = broadcast_to %4 {shape=2,4} : float32[2,4]
           %6 = multiply %0, %5 : float32[2,4]
           %7 = matmul %6, %1 : float32[2,4]
           %8 = exp %1 : float32[4,4]
           return %7, %8
         }
       %4 = get %3 {index=0} : float32[2,3,5,4]
       %5 = get %3 {index=1} : float32[2,3,7,4]
       return %4, %5
     })",
     1e-4},
    {"blocks_of_which_one_result_is_wanted", R"(graph g(%0: float32[5,4]) {
       %1 = blocks %0 {grid=0 sums=2 windows=0,5,5,2,1,0,5,2,3,0,5,0,2,1,2,3,0,2,0,3,0,2} : bool[0]
         graph first(%0: float32[5,4]) {
           %1 = slice %0 {start=0,0 size=3,4 step=1,1} : float32[3,4]
           %2 = exp %0 : float32[5,4]
           %3 = slice %0 {start=1,0 size=2,4 step=1,1} : float32[2,4]
           return %1, %2, %3
         }
         graph second(%0: float32[3,4]) {
           %1 = slice %0 {start=0,0 size=2,4 step=1,1} : float32[2,4]
           %2 = exp %0 : float32[3,4]
           return %1, %2, %1
         }
       %2 = get %1 {index=1} : float32[5,4]
       return %2
     })",
     0},
    {"blocks_whose_results_are_read_transposed", R"(graph g(%0: float32[2,5,3], %1: float32[1,4,3]) {
       %2 = blocks %0, %1 {grid=1 sums=1 windows=1,0,5,4,1,0,3,0,4,0,3,0,4,1,3,2,1,2,3,2,1,2} : bool[0]
         graph first(%0: float32[3,3], %1: float32[4,3]) {
           %2 = exp %0 : float32[3,3]
           %3 = sin %1 : float32[4,3]
           return %2, %3
         }
         graph second(%0: float32[2,3], %1: float32[2,3]) {
           %2 = multiply %0, %1 : float32[2,3]
           return %2, %0
         }
       %3 = get %2 {index=0} : float32[2,5,3]
       %4 = get %2 {index=1} : float32[2,4,3]
       %5 = transpose %3 {axes=1,0,2} : float32[5,2,3]
       %6 = reshape %5 {shape=5,6} : float32[5,6]
       %7 = transpose %4 {axes=1,0,2} : float32[4,2,3]
       %8 = reshape %7 {shape=4,6} : float32[4,6]
       %9 = exp %8 : float32[4,6]
       return %6, %9
     })",
     0},
    {"tiles_in_several_strips", R"(graph g(%0: complex64[530,140], %1: complex64[140,530]) {
       %2 = transpose %0 {axes=1,0} : complex64[140,530]
       %3 = multiply %2, %1 : complex64[140,530]
       return %3
     })",
     1e-5, 1},
    {"folds_along_transposed_rows", R"(graph g(%0: float32[3,75,40], %1: bfloat16[3,75,40], %2: float32[3,40,75]) {
       %3 = transpose %0 {axes=0,2,1} : float32[3,40,75]
       %4 = multiply %3, %2 : float32[3,40,75]
       %5 = sum %4 {dtype=float32 axes=2} : float32[3,40]
       %6 = transpose %1 {axes=0,2,1} : bfloat16[3,40,75]
       %7 = max %6 {dtype=bfloat16 axes=2} : bfloat16[3,40]
       return %5, %7
     })",
     1e-4, 2},
    {"folds_down_transposed_columns", R"(graph g(%0: float32[37,1100], %1: float32[1100,37], %2: float32[20,70]) {
       %3 = transpose %0 {axes=1,0} : float32[1100,37]
       %4 = multiply %3, %1 : float32[1100,37]
       %5 = sum %4 {dtype=float32 axes=0} : float32[37]
       %6 = transpose %2 {axes=1,0} : float32[70,20]
       %7 = min %6 {dtype=float32 axes=0} : float32[20]
       return %5, %7
     })",
     1e-3, 3},
    {"softmax_of_transposed_rows", R"(graph g(%0: float32[75,40], %1: float32[40,75]) {
       %2 = transpose %0 {axes=1,0} : float32[40,75]
       %3 = add %2, %1 : float32[40,75]
       %4 = max %3 {dtype=float32 axes=1} : float32[40]
       %5 = reshape %4 {shape=40,1} : float32[40,1]
       %6 = broadcast_to %5 {shape=40,75} : float32[40,75]
       %7 = subtract %3, %6 : float32[40,75]
       %8 = exp %7 : float32[40,75]
       %9 = sum %8 {dtype=float32 axes=1} : float32[40]
       %10 = reshape %9 {shape=40,1} : float32[40,1]
       %11 = broadcast_to %10 {shape=40,75} : float32[40,75]
       %12 = divide %8, %11 : float32[40,75]
       return %12, %9
     })",
     1e-5, 1},
    {"transposed_rows_longer_than_memory_for_them", R"(graph g(%0: float32[33000,17]) {
       %1 = transpose %0 {axes=1,0} : float32[17,33000]
       %2 = max %1 {dtype=float32 axes=1} : float32[17]
       %3 = reshape %2 {shape=17,1} : float32[17,1]
       %4 = broadcast_to %3 {shape=17,33000} : float32[17,33000]
       %5 = subtract %1, %4 : float32[17,33000]
       return %5
     })",
     1e-5, 2},
    {"fold_of_all_of_a_transposed", R"(graph g(%0: float32[170,140], %1: float32[140,170]) {
       %2 = transpose %0 {axes=1,0} : float32[140,170]
       %3 = multiply %2, %1 : float32[140,170]
       %4 = sum %3 {dtype=float32 axes=0,1} : float32[]
       return %4
     })",
     1e-3, 2},
    {"transposed_in_two_ways", R"(graph g(%0: float32[30,31,32], %1: float32[32,30,31], %2: float32[31,32,30]) {
       %3 = transpose %0 {axes=1,2,0} : float32[31,32,30]
       %4 = transpose %1 {axes=2,0,1} : float32[31,32,30]
       %5 = add %3, %4 : float32[31,32,30]
       %6 = multiply %5, %2 : float32[31,32,30]
       return %6
     })",
     0, 2},
    {"sum_inner", R"(graph g(%0: float32[6,75]) {
       %1 = sum %0 {dtype=float32 axes=1} : float32[6]
       return %1
     })",
     1e-5, 1},
    {"sum_outer", R"(graph g(%0: float32[75,6]) {
       %1 = sum %0 {dtype=float32 axes=0} : float32[6]
       return %1
     })",
     1e-5, 1},
    {"sum_all", R"(graph g(%0: float32[7,11,13]) {
       %1 = sum %0 {dtype=float32 axes=0,1,2} : float32[]
       return %1
     })",
     1e-5, 1},
    {"sum_outer_inner", R"(graph g(%0: float32[7,11,13]) {
       %1 = sum %0 {dtype=float32 axes=0,2} : float32[11]
       return %1
     })",
     1e-5, 1},
    {"sum_middle", R"(graph g(%0: float32[7,11,13]) {
       %1 = sum %0 {dtype=float32 axes=1} : float32[7,13]
       return %1
     })",
     1e-5, 1},
    {"sum_even_axes", R"(graph g(%0: float32[3,5,4,6]) {
       %1 = sum %0 {dtype=float32 axes=0,2} : float32[5,6]
       return %1
     })",
     1e-5, 1},
    {"sum_long", R"(graph g(%0: float32[2,70000]) {
       %1 = sum %0 {dtype=float32 axes=1} : float32[2]
       return %1
     })",
     1e-3, 2},
    {"sum_tall", R"(graph g(%0: float32[3000,5]) {
       %1 = sum %0 {dtype=float32 axes=0} : float32[5]
       return %1
     })",
     1e-3, 2},
    {"columns_in_bands", R"(graph g(%0: float32[70,37], %1: float32[37]) {
       %2 = exp %0 : float32[70,37]
       %3 = broadcast_to %1 {shape=70,37} : float32[70,37]
       %4 = multiply %2, %3 : float32[70,37]
       %5 = sum %4 {dtype=float32 axes=0} : float32[37]
       %6 = max %0 {dtype=float32 axes=0} : float32[37]
       return %2, %5, %6
     })",
     1e-3, 1},
    {"softmax_of_columns", R"(graph g(%0: float32[3,21,37]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[3,37]
       %2 = reshape %1 {shape=3,1,37} : float32[3,1,37]
       %3 = broadcast_to %2 {shape=3,21,37} : float32[3,21,37]
       %4 = subtract %0, %3 : float32[3,21,37]
       %5 = exp %4 : float32[3,21,37]
       %6 = sum %5 {dtype=float32 axes=1} : float32[3,37]
       %7 = reshape %6 {shape=3,1,37} : float32[3,1,37]
       %8 = broadcast_to %7 {shape=3,21,37} : float32[3,21,37]
       %9 = divide %5, %8 : float32[3,21,37]
       return %9
     })",
     1e-5, 1},
    {"softmax_of_columns_and_what_it_sums", R"(graph g(%0: float32[70,600]) {
       %1 = max %0 {dtype=float32 axes=0} : float32[600]
       %2 = reshape %1 {shape=1,600} : float32[1,600]
       %3 = broadcast_to %2 {shape=70,600} : float32[70,600]
       %4 = subtract %0, %3 : float32[70,600]
       %5 = exp %4 : float32[70,600]
       %6 = sum %5 {dtype=float32 axes=0} : float32[600]
       %7 = reshape %6 {shape=1,600} : float32[1,600]
       %8 = broadcast_to %7 {shape=70,600} : float32[70,600]
       %9 = divide %5, %8 : float32[70,600]
       %10 = log %6 : float32[600]
       return %9, %10, %6
     })",
     1e-4, 1},
    {"softmax_of_columns_of_halves", R"(graph g(%0: float16[2,40,19]) {
       %1 = max %0 {dtype=float16 axes=1} : float16[2,19]
       %2 = reshape %1 {shape=2,1,19} : float16[2,1,19]
       %3 = broadcast_to %2 {shape=2,40,19} : float16[2,40,19]
       %4 = subtract %0, %3 : float16[2,40,19]
       %5 = exp %4 : float16[2,40,19]
       %6 = sum %5 {dtype=float16 axes=1} : float16[2,19]
       %7 = reshape %6 {shape=2,1,19} : float16[2,1,19]
       %8 = broadcast_to %7 {shape=2,40,19} : float16[2,40,19]
       %9 = divide %5, %8 : float16[2,40,19]
       return %9
     })",
     1e-2, 1},
    {"softmax_of_few_columns", R"(graph g(%0: float32[40,7]) {
       %1 = max %0 {dtype=float32 axes=0} : float32[7]
       %2 = reshape %1 {shape=1,7} : float32[1,7]
       %3 = broadcast_to %2 {shape=40,7} : float32[40,7]
       %4 = subtract %0, %3 : float32[40,7]
       %5 = exp %4 : float32[40,7]
       %6 = sum %5 {dtype=float32 axes=0} : float32[7]
       %7 = reshape %6 {shape=1,7} : float32[1,7]
       %8 = broadcast_to %7 {shape=40,7} : float32[40,7]
       %9 = divide %5, %8 : float32[40,7]
       return %9
     })",
     1e-5, 3},
    {"softmax_of_columns_of_two_blocks", R"(graph g(%0: float32[1100,20]) {
       %1 = max %0 {dtype=float32 axes=0} : float32[20]
       %2 = reshape %1 {shape=1,20} : float32[1,20]
       %3 = broadcast_to %2 {shape=1100,20} : float32[1100,20]
       %4 = subtract %0, %3 : float32[1100,20]
       %5 = exp %4 : float32[1100,20]
       %6 = sum %5 {dtype=float32 axes=0} : float32[20]
       %7 = reshape %6 {shape=1,20} : float32[1,20]
       %8 = broadcast_to %7 {shape=1100,20} : float32[1100,20]
       %9 = divide %5, %8 : float32[1100,20]
       return %9
     })",
     1e-3, 5},
    {"columns_of_two_axes", R"(graph g(%0: float32[4,9,30], %1: float32[30], %2: float32[30]) {
       %3 = sum %0 {dtype=float32 axes=0,1} : float32[30]
       %4 = reshape %3 {shape=1,1,30} : float32[1,1,30]
       %5 = constant {bits=1021542969} : float32[]
       %6 = broadcast_to %5 {shape=1,1,30} : float32[1,1,30]
       %7 = multiply %4, %6 : float32[1,1,30]
       %8 = broadcast_to %7 {shape=4,9,30} : float32[4,9,30]
       %9 = subtract %0, %8 : float32[4,9,30]
       %10 = multiply %9, %9 : float32[4,9,30]
       %11 = sum %10 {dtype=float32 axes=0,1} : float32[30]
       %12 = add %11, %1 : float32[30]
       %13 = rsqrt %12 : float32[30]
       %14 = reshape %13 {shape=1,1,30} : float32[1,1,30]
       %15 = broadcast_to %14 {shape=4,9,30} : float32[4,9,30]
       %16 = multiply %9, %15 : float32[4,9,30]
       %17 = broadcast_to %2 {shape=4,9,30} : float32[4,9,30]
       %18 = add %16, %17 : float32[4,9,30]
       return %18, %13
     })",
     1e-4, 1},
    {"columns_of_a_transposed_array", R"(graph g(%0: float32[40,50]) {
       %1 = transpose %0 {axes=1,0} : float32[50,40]
       %2 = sum %1 {dtype=float32 axes=0} : float32[40]
       %3 = reshape %2 {shape=1,40} : float32[1,40]
       %4 = broadcast_to %3 {shape=50,40} : float32[50,40]
       %5 = subtract %1, %4 : float32[50,40]
       return %5
     })",
     1e-4, 1},
    {"tall_columns_of_halves", R"(graph g(%0: float16[2,1100,37]) {
       %1 = sum %0 {dtype=float16 axes=1} : float16[2,37]
       return %1
     })",
     1.0, 2},
    {"sum_f16", R"(graph g(%0: float16[5,40]) {
       %1 = sum %0 {dtype=float16 axes=1} : float16[5]
       return %1
     })",
     1e-2, 1},
    {"sum_int8", R"(graph g(%0: int8[5,40]) {
       %1 = sum %0 {dtype=int32 axes=0} : int32[40]
       return %1
     })",
     0, 1},
    {"max_min", R"(graph g(%0: float32[5,40]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[5]
       %2 = min %0 {dtype=float32 axes=1} : float32[5]
       return %1, %2
     })",
     0, 1},
    {"exp_times_y_sum", R"(graph g(%0: float32[5,40], %1: float32[5,40]) {
       %2 = exp %0 : float32[5,40]
       %3 = multiply %2, %1 : float32[5,40]
       %4 = sum %3 {dtype=float32 axes=0,1} : float32[]
       return %4
     })",
     1e-4, 1},
    {"beside_its_sum", R"(graph g(%0: float32[33]) {
       %1 = constant {bits=2} : float32[]
       %2 = multiply %0, %1 : float32[33]
       %3 = sum %2 {dtype=float32 axes=0} : float32[]
       return %2, %3
     })",
     1e-4, 1},
    {"sums_along_both_axes", R"(graph g(%0: float32[21,34]) {
       %1 = exp %0 : float32[21,34]
       %2 = sum %1 {dtype=float32 axes=0} : float32[34]
       %3 = sum %1 {dtype=float32 axes=1} : float32[21]
       return %2, %3
     })",
     1e-4, 2},
    {"softmax", R"(graph g(%0: float32[6,50]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[6]
       %2 = reshape %1 {shape=6,1} : float32[6,1]
       %3 = broadcast_to %2 {shape=6,50} : float32[6,50]
       %4 = subtract %0, %3 : float32[6,50]
       %5 = exp %4 : float32[6,50]
       %6 = sum %5 {dtype=float32 axes=1} : float32[6]
       %7 = reshape %6 {shape=6,1} : float32[6,1]
       %8 = broadcast_to %7 {shape=6,50} : float32[6,50]
       %9 = divide %5, %8 : float32[6,50]
       return %9
     })",
     1e-5, 1},
    {"rows_longer_than_a_block", R"(graph g(%0: float32[16,32901]) {
       %1 = sum %0 {dtype=float32 axes=1} : float32[16]
       %2 = reshape %1 {shape=16,1} : float32[16,1]
       %3 = broadcast_to %2 {shape=16,32901} : float32[16,32901]
       %4 = subtract %0, %3 : float32[16,32901]
       %5 = max %4 {dtype=float32 axes=1} : float32[16]
       return %4, %5
     })",
     1e-2, 1},
    {"rows_of_several_axes", R"(graph g(%0: float16[3,4,1,5,7], %1: float32[3,4]) {
       %2 = sum %0 {dtype=float16 axes=2,3,4} : float16[3,4]
       %3 = astype %2 {dtype=float32} : float32[3,4]
       %4 = exp %1 : float32[3,4]
       %5 = multiply %3, %4 : float32[3,4]
       %6 = reshape %5 {shape=3,4,1,1,1} : float32[3,4,1,1,1]
       %7 = broadcast_to %6 {shape=3,4,1,5,7} : float32[3,4,1,5,7]
       %8 = astype %0 {dtype=float32} : float32[3,4,1,5,7]
       %9 = add %7, %8 : float32[3,4,1,5,7]
       return %9, %2, %5
     })",
     1e-1, 1},
    {"one_row", R"(graph g(%0: float32[50]) {
       %1 = max %0 {dtype=float32 axes=0} : float32[]
       %2 = exp %1 : float32[]
       %3 = multiply %0, %2 : float32[50]
       return %3
     })",
     1e-5, 1},
    {"sum_of_a_spread_sum", R"(graph g(%0: float32[5,13]) {
       %1 = sum %0 {dtype=float32 axes=0,1} : float32[]
       %2 = reshape %1 {shape=1,1} : float32[1,1]
       %3 = broadcast_to %2 {shape=5,13} : float32[5,13]
       %4 = any %3 {dtype=bool axes=0,1} : bool[]
       return %4
     })",
     0, 1},
    {"product_of_one_value_that_a_loop_computes", R"(graph g(%0: float32[]) {
       %1 = broadcast_to %0 {shape=3,5,7} : float32[3,5,7]
       %2 = tan %1 : float32[3,5,7]
       %3 = prod %2 {dtype=float32 axes=1} : float32[3,7]
       return %3
     })",
     1e-4, 1},
    {"row_values_that_loops_compute", R"(graph g(%0: float32[6,50]) {
       %1 = sum %0 {dtype=float32 axes=1} : float32[6]
       %2 = tan %1 : float32[6]
       %3 = max %0 {dtype=float32 axes=1} : float32[6]
       %4 = remainder %2, %3 : float32[6]
       %5 = isnan %4 : bool[6]
       %6 = reshape %5 {shape=6,1} : bool[6,1]
       %7 = broadcast_to %6 {shape=6,50} : bool[6,50]
       %8 = reshape %4 {shape=6,1} : float32[6,1]
       %9 = broadcast_to %8 {shape=6,50} : float32[6,50]
       %10 = where %7, %0, %9 : float32[6,50]
       return %10, %4
     })",
     1e-2, 1},
    {"a_few_long_rows", R"(graph g(%0: float32[2,17000]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[2]
       %2 = reshape %1 {shape=2,1} : float32[2,1]
       %3 = broadcast_to %2 {shape=2,17000} : float32[2,17000]
       %4 = subtract %0, %3 : float32[2,17000]
       return %4
     })",
     0, 2},
    {"rows_and_their_total", R"(graph g(%0: float32[6,50]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[6]
       %2 = exp %1 : float32[6]
       %3 = sum %2 {dtype=float32 axes=0} : float32[]
       %4 = sum %0 {dtype=float32 axes=0,1} : float32[]
       return %3, %4
     })",
     1e-4, 3},
    {"read_in_other_rows", R"(graph g(%0: float32[5,5]) {
       %1 = max %0 {dtype=float32 axes=1} : float32[5]
       %2 = broadcast_to %1 {shape=5,5} : float32[5,5]
       %3 = subtract %0, %2 : float32[5,5]
       return %3
     })",
     0, 2},
    {"stored_before_the_next_pass", R"(graph g(%0: float32[6,50]) {
       %1 = exp %0 : float32[6,50]
       %2 = sum %1 {dtype=float32 axes=1} : float32[6]
       %3 = reshape %2 {shape=6,1} : float32[6,1]
       %4 = broadcast_to %3 {shape=6,50} : float32[6,50]
       %5 = divide %0, %4 : float32[6,50]
       return %1, %5
     })",
     1e-5, 1},
    {"argmax", R"(graph g(%0: float32[6,50]) {
       %1 = argmax %0 {dtype=uint32 axes=1} : uint32[6]
       %2 = argmin %0 {dtype=uint32 axes=0,1} : uint32[]
       return %1, %2
     })"},
    {"slice_flip", R"(graph g(%0: float32[9,12]) {
       %1 = slice %0 {start=1,11 size=4,6 step=2,-2} : float32[4,6]
       %2 = exp %1 : float32[4,6]
       return %2, %1
     })",
     0, 1},
    {"reshape_of_transposed", R"(graph g(%0: float32[4,6]) {
       %1 = transpose %0 {axes=1,0} : float32[6,4]
       %2 = reshape %1 {shape=24} : float32[24]
       %3 = negative %2 : float32[24]
       return %3
     })"},
    {"concatenate", R"(graph g(%0: float32[2,3], %1: float32[4,3]) {
       %2 = exp %0 : float32[2,3]
       %3 = concatenate %2, %1, %0 {axis=0} : float32[8,3]
       %4 = concatenate %3, %3 {axis=1} : float32[8,6]
       return %4
     })"},
    {"empty_parts", R"(graph g(%0: int8[2,0,3]) {
       %1 = concatenate %0, %0 {axis=2} : int8[2,0,6]
       %2 = negative %1 : int8[2,0,6]
       return %2
     })"},
    {"pad", R"(graph g(%0: int32[2,3], %1: int32[]) {
       %2 = pad %0, %1 {low=1,0 high=0,2} : int32[3,5]
       return %2
     })"},
    {"take", R"(graph g(%0: float32[7,5], %1: int32[2,3]) {
       %2 = take %0, %1 {axis=0} : float32[2,3,5]
       %3 = take %0, %1 {axis=1} : float32[7,2,3]
       %4 = exp %3 : float32[7,2,3]
       return %2, %4
     })"},
    // The same indices along several axes, and as numbers.
    {"take_twice", R"(graph g(%0: float32[4,4], %1: int32[4], %2: float32[4,4,4]) {
       %3 = take %0, %1 {axis=0} : float32[4,4]
       %4 = take %0, %1 {axis=1} : float32[4,4]
       %5 = add %3, %4 : float32[4,4]
       %6 = take %2, %1 {axis=0} : float32[4,4,4]
       %7 = take %2, %1 {axis=1} : float32[4,4,4]
       %8 = take %2, %1 {axis=2} : float32[4,4,4]
       return %5, %6, %7, %8
     })"},
    {"take_and_read", R"(graph g(%0: float32[4,4], %1: int32[4]) {
       %2 = astype %1 {dtype=float32} : float32[4]
       %3 = take %0, %1 {axis=1} : float32[4,4]
       %4 = sum %3 {dtype=float32 axes=1} : float32[4]
       %5 = add %4, %2 : float32[4]
       %6 = exp %3 : float32[4,4]
       %7 = reshape %5 {shape=4,1} : float32[4,1]
       %8 = broadcast_to %7 {shape=4,4} : float32[4,4]
       %9 = multiply %8, %6 : float32[4,4]
       return %5, %9
     })"},
    {"take_along", R"(graph g(%0: float32[7,5], %1: uint32[7,3]) {
       %2 = take_along_axis %0, %1 {axis=1} : float32[7,3]
       return %2
     })"},
    {"scatter_add", R"(graph g(%0: float32[7,5], %1: int32[9,5], %2: float32[9,5]) {
       %3 = scatter_add %0, %1, %2 {axis=0} : float32[7,5]
       %4 = exp %3 : float32[7,5]
       return %3, %4
     })"},
    {"scatter_add_inner", R"(graph g(%0: float64[3,70,5], %1: int8[3,4,5], %2: float64[3,4,5]) {
       %3 = scatter_add %0, %1, %2 {axis=1} : float64[3,70,5]
       return %3
     })"},
    {"scatter_add_flat", R"(graph g(%0: float16[6], %1: uint64[40], %2: float16[40]) {
       %3 = scatter_add %0, %1, %2 {axis=0} : float16[6]
       return %3
     })"},
    {"scatter_add_wide", R"(graph g(%0: int16[4,2100], %1: int64[3,1], %2: int16[3,2100]) {
       %3 = broadcast_to %1 {shape=3,2100} : int64[3,2100]
       %4 = scatter_add %0, %3, %2 {axis=0} : int16[4,2100]
       return %4
     })"},
    {"scatter_add_literals", R"(graph g(%0: uint8[3,4]) {
       %1 = constant {bits=(0,0)} : complex64[3,5]
       %2 = constant {bits=(1,2)} : complex64[3,4]
       %3 = scatter_add %1, %0, %2 {axis=1} : complex64[3,5]
       %4 = constant {bits=1} : int32[3,4]
       %5 = scatter_add %1, %4, %2 {axis=1} : complex64[3,5]
       return %3, %5
     })"},
    {"scatter_add_empty", R"(graph g(%0: float32[3,0], %1: int32[2,0], %2: float32[2,0], %3: float32[3], %4: int32[0], %5: float32[0]) {
       %6 = scatter_add %0, %1, %2 {axis=0} : float32[3,0]
       %7 = scatter_add %3, %4, %5 {axis=0} : float32[3]
       return %6, %7
     })"},
    {"put_along", R"(graph g(%0: float32[7,5], %1: int32[9,5], %2: float32[9,5], %3: bfloat16[6], %4: uint64[40], %5: bfloat16[40]) {
       %6 = put_along_axis %0, %1, %2 {axis=0} : float32[7,5]
       %7 = exp %6 : float32[7,5]
       %8 = put_along_axis %3, %4, %5 {axis=0} : bfloat16[6]
       %9 = constant {bits=(0,0)} : complex64[7,5]
       %10 = constant {bits=(1,2)} : complex64[9,5]
       %11 = put_along_axis %9, %1, %10 {axis=0} : complex64[7,5]
       return %6, %7, %8, %11
     })"},
    {"put_along_empty", R"(graph g(%0: float32[3,0], %1: int32[2,0], %2: float32[2,0], %3: float32[0], %4: int32[4], %5: float32[4]) {
       %6 = put_along_axis %0, %1, %2 {axis=0} : float32[3,0]
       %7 = put_along_axis %3, %4, %5 {axis=0} : float32[0]
       return %6, %7
     })"},
    {"scatter_add_bool", R"(graph g(%0: bool[5], %1: int32[9], %2: bool[9]) {
       %3 = scatter_add %0, %1, %2 {axis=0} : bool[5]
       return %3
     })"},
    {"cumulative", R"(graph g(%0: float32[5,7], %1: float16[9]) {
       %2 = constant {bits=1.5} : float32[5,7]
       %3 = cumsum %2 {axis=0 reverse=0 inclusive=0} : float32[5,7]
       %4 = transpose %0 {axes=1,0} : float32[7,5]
       %5 = cumprod %4 {axis=0 reverse=1 inclusive=1} : float32[7,5]
       %6 = exp %5 : float32[7,5]
       %7 = cummax %6 {axis=1 reverse=0 inclusive=1} : float32[7,5]
       %8 = cumsum %7 {axis=0 reverse=0 inclusive=1} : float32[7,5]
       %9 = linear_recurrence %8, %8 {axis=0 reverse=1} : float32[7,5]
       %10 = add %6, %9 : float32[7,5]
       %11 = logcumsumexp %1 {axis=0 reverse=0 inclusive=0} : float16[9]
       return %3, %5, %10, %11
     })"},
    // What is empty has no step that writes it, and others read it in place.
    {"cumulative_empty", R"(graph g(%0: float32[0,3]) {
       %1 = cumsum %0 {axis=0 reverse=0 inclusive=1} : float32[0,3]
       %2 = exp %1 : float32[0,3]
       return %2
     })"},
    {"scatter_add_empty_read", R"(graph g(%0: float32[3,0], %1: int32[2,0], %2: float32[2,0]) {
       %3 = scatter_add %0, %1, %2 {axis=0} : float32[3,0]
       %4 = exp %3 : float32[3,0]
       return %4
     })"},
    {"arange", R"(graph g(%0: float32[], %1: float32[]) {
       %2 = arange %0, %1 {axis=0} : float32[21]
       %3 = arange %0, %1 {axis=1} : float32[3,21]
       %4 = exp %3 : float32[3,21]
       return %2, %4
     })"},
    {"random_bits", R"(graph g(%0: uint32[2]) {
       %1 = random_bits %0 {width=4} : uint32[5,5]
       %2 = random_bits %0 {width=2} : uint16[7]
       return %1, %2
     })"},
    {"random_bits_of_keys", R"(graph g(%0: uint32[3,2,2]) {
       %1 = random_bits %0 {width=4} : uint32[3,2,5]
       %2 = random_bits %0 {width=1} : uint8[3,2,7,3]
       return %1, %2
     })"},
    {"matmul", R"(graph g(%0: float32[5,7], %1: float32[7,9]) {
       %2 = matmul %0, %1 : float32[5,9]
       %3 = exp %2 : float32[5,9]
       return %3
     })",
     1e-3},
    {"matmul_transposed_batch", R"(graph g(%0: float64[3,7,5], %1: float64[3,7,9]) {
       %2 = transpose %0 {axes=0,2,1} : float64[3,5,7]
       %3 = matmul %2, %1 : float64[3,5,9]
       return %3
     })",
     1e-9},
    {"matmul_degenerate_f32", R"(graph g(%0: float32[3,1], %1: float32[1,3], %2: float32[1,1]) {
       %3 = transpose %0 {axes=1,0} : float32[1,3]
       %4 = matmul %0, %3 : float32[3,3]
       %5 = matmul %3, %0 : float32[1,1]
       %6 = matmul %0, %1 : float32[3,3]
       %7 = matmul %0, %2 : float32[3,1]
       return %4, %5, %6, %7
     })",
     1e-5},
    {"matmul_degenerate_f64", R"(graph g(%0: float64[3,1], %1: float64[1,3], %2: float64[1,1]) {
       %3 = transpose %0 {axes=1,0} : float64[1,3]
       %4 = matmul %0, %3 : float64[3,3]
       %5 = matmul %3, %0 : float64[1,1]
       %6 = matmul %0, %1 : float64[3,3]
       %7 = matmul %0, %2 : float64[3,1]
       return %4, %5, %6, %7
     })",
     1e-9},
    {"matmul_batch_broadcast", R"(graph g(%0: float32[3,4], %1: float32[2,5,4,6]) {
       %2 = broadcast_to %0 {shape=2,5,3,4} : float32[2,5,3,4]
       %3 = matmul %2, %1 : float32[2,5,3,6]
       return %3
     })",
     1e-4},
    {"few_rows_f32", few_rows("float32"), 1e-5},
    {"few_rows_f64", few_rows("float64"), 1e-13},
    {"few_rows_f16", few_rows("float16"), 2e-3},
    {"few_rows_bf16", few_rows("bfloat16"), 2e-2},
    {"matmul_int", R"(graph g(%0: int32[5,7], %1: int32[7,9]) {
       %2 = matmul %0, %1 : int32[5,9]
       return %2
     })"},
    {"addmm_f16", R"(graph g(%0: float16[5,9], %1: float16[5,7], %2: float16[7,9]) {
       %3 = addmm %0, %1, %2 : float16[5,9]
       return %3
     })",
     5e-2},
    {"convolutions", R"(graph g(%0: float32[3,7,6,4], %1: float32[8,3,2,2], %2: float32[3,4,7,8]) {
       %3 = conv %0, %1 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float32[3,4,7,8]
       %4 = conv_input %2, %1 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float32[3,7,6,4]
       %5 = conv_weight %0, %2 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float32[8,3,2,2]
       %6 = exp %3 : float32[3,4,7,8]
       return %3, %4, %5, %6
     })",
     1e-3},
    {"convolutions_double", R"(graph g(%0: float64[3,7,6,4], %1: float64[8,3,2,2], %2: float64[3,4,7,8]) {
       %3 = conv %0, %1 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float64[3,4,7,8]
       %4 = conv_input %2, %1 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float64[3,7,6,4]
       %5 = conv_weight %0, %2 {groups=2 axes=7,3,2,1,1,1,6,2,1,1,1,1} : float64[8,3,2,2]
       return %3, %4, %5
     })",
     1e-12},
    {"convolutions_half", R"(graph g(%0: float16[2,5,3], %1: float16[2,5,3], %2: float16[2,1,2]) {
       %3 = conv %0, %1 {groups=1 axes=5,5,1,0,0,1} : float16[2,1,2]
       %4 = conv_input %2, %1 {groups=1 axes=5,5,1,0,0,1} : float16[2,5,3]
       %5 = conv_weight %0, %2 {groups=1 axes=5,5,1,0,0,1} : float16[2,5,3]
       return %3, %4, %5
     })",
     5e-2},
    {"convolutions_empty", R"(graph g(%0: float32[0,5,3], %1: float32[2,3,3], %2: float32[0,3,2], %3: float64[2,5,0], %4: float64[2,3,2]) {
       %5 = conv %0, %1 {groups=1 axes=5,3,1,0,0,1} : float32[0,3,2]
       %6 = conv_input %2, %1 {groups=1 axes=5,3,1,0,0,1} : float32[0,5,3]
       %7 = conv_weight %0, %2 {groups=1 axes=5,3,1,0,0,1} : float32[2,3,3]
       %8 = conv_weight %3, %4 {groups=1 axes=5,3,1,0,0,1} : float64[2,3,0]
       return %5, %6, %7, %8
     })"},
    {"argsort", R"(graph g(%0: float32[3,2000], %1: bool[9,2]) {
       %2 = exp %0 : float32[3,2000]
       %3 = argsort %2 {axis=1} : uint32[3,2000]
       %4 = take_along_axis %2, %3 {axis=1} : float32[3,2000]
       %5 = transpose %0 {axes=1,0} : float32[2000,3]
       %6 = argsort %5 {axis=0} : uint32[2000,3]
       %7 = argsort %1 {axis=0} : uint32[9,2]
       %8 = slice %0 {start=1,7 size=1,50 step=1,2} : float32[1,50]
       %9 = argsort %8 {axis=1} : uint32[1,50]
       return %4, %6, %7, %9
     })"},
    {"argsort_empty", R"(graph g(%0: float32[3,0]) {
       %1 = argsort %0 {axis=1} : uint32[3,0]
       %2 = argsort %0 {axis=0} : uint32[3,0]
       %3 = add %1, %2 : uint32[3,0]
       return %3
     })"},
    {"solve", R"(graph g(%0: float64[5,5], %1: float64[5,3], %2: float32[2,4,4], %3: float32[2,4,1]) {
       %4 = solve %0, %1 : float64[5,3]
       %5 = transpose %0 {axes=1,0} : float64[5,5]
       %6 = solve %5, %4 : float64[5,3]
       %7 = exp %6 : float64[5,3]
       %8 = solve %2, %3 : float32[2,4,1]
       return %4, %7, %8
     })",
     1e-2},
    {"solve_half", R"(graph g(%0: float16[4,4], %1: float16[4,2]) {
       %2 = solve %0, %1 : float16[4,2]
       return %2
     })",
     5e-2},
    {"solve_empty",
     R"(graph g(%0: float32[0,3,3], %1: float32[0,3,2], %2: float32[0,0], %3: float32[0,4], %4: float32[3,3], %5: float32[3,0]) {
       %6 = solve %0, %1 : float32[0,3,2]
       %7 = solve %2, %3 : float32[0,4]
       %8 = solve %4, %5 : float32[3,0]
       %9 = exp %8 : float32[3,0]
       return %6, %7, %9
     })"},
    {"solve_singular", R"(graph g(%0: float32[2,2]) {
       %1 = constant {bits=1,2,2,4} : float32[2,2]
       %2 = solve %1, %0 : float32[2,2]
       %3 = constant {bits=(0,0)} : complex64[2,2]
       %4 = astype %0 {dtype=complex64} : complex64[2,2]
       %5 = solve %3, %4 : complex64[2,2]
       return %2, %5
     })"},
    {"empty", R"(graph g(%0: float32[0,4], %1: float32[3,0]) {
       %2 = exp %0 : float32[0,4]
       %3 = sum %0 {dtype=float32 axes=0} : float32[4]
       %4 = sum %1 {dtype=float32 axes=0,1} : float32[]
       return %2, %3, %4
     })"},
    {"scalars", R"(graph g(%0: float32[], %1: float32[4]) {
       %2 = exp %0 : float32[]
       %3 = multiply %1, %2 : float32[4]
       return %3, %2
     })"},
    {"constants_of_several_elements", R"(graph g(%0: float32[3,2]) {
       %1 = constant {bits=1,2.5,-0,4,5,6} : float32[3,2]
       %2 = add %0, %1 : float32[3,2]
       %3 = sum %1 {dtype=float32 axes=0} : float32[2]
       %4 = transpose %1 {axes=1,0} : float32[2,3]
       %5 = matmul %4, %0 : float32[2,2]
       return %2, %3, %1, %4, %5
     })",
     1e-5},
    {"output_is_input", R"(graph g(%0: float32[3], %1: float32[2,2]) {
       %2 = transpose %1 {axes=1,0} : float32[2,2]
       return %0, %2, %0
     })",
     0, 0},
};

// Numbers within the tolerance of a reference cannot be compared among infinities of cancelled sums: keep inputs tame for those.
std::vector<Tensor> inputs_of(const Graph& g, const Case& c) {
  std::vector<Tensor> in = graph::sample_inputs(g, 7);
  if (c.tolerance == 0) return in;
  std::uint32_t seed = 1;
  for (Tensor& t : in)
    if (is_floating(t.dtype)) {
      std::vector<std::uint64_t> words;
      for (std::int64_t i = 0; i < t.shape.product(); ++i) {
        seed = seed * 1664525u + 1013904223u;
        float v = static_cast<float>(seed >> 8) / (1 << 24) - 0.25f;
        std::uint64_t w = 0;
        double d = v;
        if (t.dtype == Dtype::float64)
          std::memcpy(&w, &d, 8);
        else
          std::memcpy(&w, &v, 4);
        if (t.dtype == Dtype::bfloat16) w >>= 16;
        if (t.dtype == Dtype::float16) w = (w >> 16 & 0x8000) | ((((w >> 23 & 0xFF) - 112) << 10 | (w >> 13 & 0x3FF)) & 0x7FFF);
        words.push_back(w);
      }
      t = graph::from_words(t.dtype, t.shape, words);
    }
  return in;
}

std::vector<Tensor> run(const Graph& g, std::span<const Tensor> in, Memory m, bool fuse, bool interpreted, int* launches = nullptr) {
  std::vector<Array> arrays = tests::place(in, m);
  engine::Plan plan = tests::plan_of(g, arrays, true, fuse);
  if (launches) *launches = static_cast<int>(plan.steps().size());
  return tests::read(plan.run(arrays, {}, {}, interpreted));
}

class Graphs : public testing::TestWithParam<Case> {};

TEST_P(Graphs, AgreeInEveryWay) {
  const Case& c = GetParam();
  Graph g = graph::parse(c.text);
  graph::verify(g);
  std::vector<Tensor> in = inputs_of(g, c), expected = graph::interpret(g, in);
  int kernels = 0;
  std::vector<Tensor> plain = run(g, in, Memory::plain, true, false, &kernels);
  if (c.kernels) {
    EXPECT_EQ(kernels, c.kernels);
  }
  EXPECT_EQ(graph::difference(plain, expected, c.tolerance), "");
  // solve and blocks copy their operands, so that their layout is nothing to the library; products of few rows are ours.
  const auto has = [&](std::string_view word) { return std::string_view(c.text).find(word) != std::string_view::npos; };
  const bool product = (has("matmul") || has("addmm")) && !has("blocks") && !std::string_view(c.name).starts_with("few_rows");
  for (Memory m : tests::kMemories)
    for (bool fuse : {true, false})
      for (bool interpreted : {false, true}) {
        SCOPED_TRACE(str("memory ", static_cast<int>(m), " fuse ", fuse, " interpreted ", interpreted));
        // Library products may sum another layout in another order.
        double tolerance = product && m != Memory::plain ? c.tolerance : 0;
        EXPECT_EQ(graph::difference(run(g, in, m, fuse, interpreted), plain, tolerance), "");
      }
}

// As bytes and back, a plan is the same; but those with steps that numbers do not make again are not kept.
TEST_P(Graphs, PlansAreTheSameFromDisk) {
  const Case& c = GetParam();
  const Graph g = graph::parse(c.text);
  const std::vector<Array> in = tests::place(inputs_of(g, c));
  const engine::Plan plan = tests::plan_of(g, in);
  const std::string bytes = engine::plan_bytes(plan);
  bool numbers = true;
  for (const engine::Step& s : plan.steps()) {
    const auto* call = std::get_if<engine::Call>(&s);
    numbers = numbers && !std::holds_alternative<engine::Region>(s) && (!call || call->routine->name() == std::string("product"));
  }
  ASSERT_EQ(!bytes.empty(), numbers) << plan.text();
  if (!numbers) return;
  const std::shared_ptr<const engine::Plan> back = engine::plan_of(bytes, false);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->text(), plan.text());
  EXPECT_EQ(engine::plan_bytes(*back), bytes);
  EXPECT_EQ(tests::read(back->run(in, {}, {})), tests::read(plan.run(in, {}, {})));
  for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 16) EXPECT_EQ(engine::plan_of(bytes.substr(0, n), false), nullptr) << n;
  EXPECT_EQ(engine::plan_of(bytes + '\0', false), nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, Graphs, testing::ValuesIn(kCases), [](const auto& i) { return i.param.name; });

}  // namespace
