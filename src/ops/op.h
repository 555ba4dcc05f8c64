// Op: every operation, elementwise (elementwise.def) and structured (structured.def), with the facts of its line. Layer: ops.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/dtype.h"
#include "sinter/shape.h"

namespace sinter::ops {

enum class Op : std::uint16_t {
#define OP1(Name, ...) Name,
#define OP2 OP1
#define OP3 OP1
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
#define STRUCTURED(Name, ...) Name,
#include "ops/structured.def"
#undef STRUCTURED
};

/// Dtype rule of an elementwise operation: which dtype its operands are cast to (the compute dtype), and the dtype of the result.
/// `promoted` is promote_types over the operands. When that is complex64, the operation must have a line in complex.def (or be Logical).
enum class Rule : std::uint8_t {
  Any,      // promoted -> same; bool too
  Number,   // promoted -> same; bool is rejected
  Real,     // promoted -> same; bool is rejected
  Float,    // floating stays, integers and bool become float32 -> same
  Integer,  // promoted, which must be bool or integer -> same
  Shift,    // promoted, which must be an integer -> same
  Compare,  // promoted -> bool
  Equal,    // promoted -> bool
  Logical,  // bool -> bool: operands become "differs from 0"
  Test,     // promoted -> bool (isnan, ...): integers are never NaN or infinite
  Part,     // promoted -> same, but complex64 gives float32 (abs, real, imag)
  Where,    // operand 0 bool; promoted over the others -> same
};
enum Trait : std::uint8_t { kNone = 0, kCommutative = 1, kExact = 2 };  // see elementwise.def
enum class OpKind : std::uint8_t { Elementwise, Source, View, Map, Reduce, Call, Scatter, Cumulative, Region, Custom, Result, Alias };

struct OpInfo {
  std::string_view name;
  int operands;  // -1: any number
  OpKind kind;
  Rule rule = Rule::Any;             // elementwise only
  std::uint8_t traits = kNone;       // elementwise only
  double low = 0, high = 0;          // elementwise only: sample domain
  std::string_view attributes = "";  // structured only: see structured.def
};
const OpInfo& info(Op op);
std::span<const OpInfo> all_ops();  // indexed by Op
/// By its text name. Throws Error when there is none.
Op find_op(std::string_view name);
/// The node holds graphs and has several results (graph/bodies.h).
inline bool has_bodies(Op op) { return info(op).kind == OpKind::Region || info(op).kind == OpKind::Custom; }
inline bool is_elementwise(Op op) { return info(op).kind == OpKind::Elementwise; }

/// Compute and result dtype of an elementwise operation. Throws DtypeError that names `op` and the dtypes.
struct ElementwiseType {
  Dtype compute;
  Dtype result;
};
ElementwiseType elementwise_type(Op op, std::span<const Dtype> operands);
/// The result's dtype, given the compute dtype.
Dtype result_dtype(Op op, Dtype compute);

/// Parameters of a structured operation that are not operands: the integers that its line names, in order. Compared by value.
/// Sizes among them may be symbolic.
using Attrs = std::vector<Dim>;
using Ints = std::span<const Dim>;

}  // namespace sinter::ops
