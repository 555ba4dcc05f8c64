// Facts about dtypes: promotion of operands, groups, limits. Layer: api.
#include <cmath>

#include "api/common.h"

namespace sinter {

Dtype result_type(std::initializer_list<Operand> operands) {
  if (operands.size() == 0) throw Error("result_type: there are no operands; got {}; give one or more");
  std::vector<const Operand*> all;
  for (const Operand& o : operands) all.push_back(&o);
  Dtype result{};
  bool first = true;
  for (Dtype t : api::operand_types("result_type", all)) {
    result = first ? t : promote_types(result, t);
    first = false;
  }
  return result;
}

bool issubdtype(Dtype t, Category c) {
  switch (c) {
    case Category::generic: return true;
    case Category::number: return kind(t) != Kind::Bool;
    case Category::integer: return is_integer(t);
    case Category::signedinteger: return is_signed(t);
    case Category::unsignedinteger: return kind(t) == Kind::Unsigned;
    case Category::inexact: return is_floating(t) || is_complex(t);
    case Category::floating: return is_floating(t);
    case Category::complexfloating: return is_complex(t);
  }
  return false;
}

finfo::finfo(Dtype t) : dtype(t), bits(8 * size_of(t)) {
  if (!is_floating(t)) throw DtypeError(str("finfo: the dtype is not floating; got ", t, "; use iinfo for integers"));
  // A format is its significant bits and the exponent of its largest numbers.
  int digits = 53, exponent = 1023;
  if (t == Dtype::float32) digits = 24, exponent = 127;
  if (t == Dtype::float16) digits = 11, exponent = 15;
  if (t == Dtype::bfloat16) digits = 8, exponent = 127;
  eps = std::ldexp(1.0, 1 - digits);
  max = std::ldexp(2 - eps, exponent);
  min = -max;
  smallest_normal = std::ldexp(1.0, 1 - exponent);
}

iinfo::iinfo(Dtype t) : dtype(t), bits(8 * size_of(t)) {
  if (!is_integer(t)) throw DtypeError(str("iinfo: the dtype is not an integer; got ", t, "; use finfo for floating dtypes"));
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  max = is_signed(t) ? all >> 1 : all;
  min = is_signed(t) ? -static_cast<std::int64_t>(max) - 1 : 0;
}

}  // namespace sinter
