// Reading files, and how arrays print.
#pragma once
#include <string>

#include "sinter/array.h"

namespace sinter {

/// An IDX file, gzip-compressed or not, of any of its types (big-endian numbers become the machine's). IoError when it cannot be read
/// or is malformed.
SINTER_API Array load_idx(const std::string& path);

/// How arrays print. Shared by all threads; a print uses one consistent set.
struct PrintOptions {
  int precision = 6;  // significant digits
  int threshold = 6;  // an axis longer than this shows `edgeitems` elements at each end
  int edgeitems = 3;
};
SINTER_API void set_printoptions(const PrintOptions& options);
SINTER_API PrintOptions get_printoptions();

/// As operator<< prints it. Evaluates.
SINTER_API std::string to_string(const Array& x);
/// Prints to standard output, with a newline.
SINTER_API void print(const Array& x);

}  // namespace sinter
