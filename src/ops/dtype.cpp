// Printing and promotion of dtypes (sinter/dtype.h). Layer: ops.
#include "sinter/dtype.h"

#include <algorithm>
#include <ostream>

namespace sinter {
namespace {

// The signed integer of a width in bytes.
Dtype signed_of(int bytes) { return static_cast<Dtype>(static_cast<int>(Dtype::int8) + std::countr_zero(static_cast<unsigned>(bytes))); }

}  // namespace

std::ostream& operator<<(std::ostream& out, Dtype t) { return out << name(t); }

Dtype promote_types(Dtype a, Dtype b) {
  if (kind(a) > kind(b)) std::swap(a, b);
  if (kind(a) == kind(b)) {
    if (is_floating(a) && is_half(a) && is_half(b) && a != b) return Dtype::float32;
    return std::max(a, b);  // dtype.def lists each kind from narrow to wide
  }
  if (kind(b) != Kind::Signed || kind(a) == Kind::Bool || size_of(a) < size_of(b)) return b;
  return size_of(a) < 8 ? signed_of(2 * size_of(a)) : Dtype::float32;  // an unsigned that b does not hold
}

}  // namespace sinter
