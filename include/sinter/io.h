// Reading and writing files, and how arrays print.
#pragma once
#include <map>
#include <string>

#include "sinter/array.h"

namespace sinter {

/// An IDX file, gzip-compressed or not, of any of its types (big-endian numbers become the machine's). IoError when it cannot be read
/// or is malformed.
SINTER_API Array load_idx(const std::string& path);

/// What a .safetensors file holds.
struct Safetensors {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;
};
/// Writes arrays of any dtype. The file is replaced as a whole: IoError leaves what was there. Names and
/// metadata are UTF-8: IoError otherwise, before anything is written.
SINTER_API void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                                 const std::map<std::string, std::string>& metadata = {});
/// IoError when the file cannot be read, is damaged, or holds a dtype that the library has not.
SINTER_API Safetensors load_safetensors(const std::string& path);

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
