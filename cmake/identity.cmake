# Run by the build: cmake -D OUTPUT=build.cpp -D OTHER=compiler... -P identity.cmake, in src/. Writes the function build_identity() of
# base/build.h: a digest of every file that generated code depends on, the interface between the library and the code generator included.
# So kernels on disk and a code generator of another build are known as such, and nobody has to remember a number.
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/base/*.h ${SOURCE}/base/*.cpp ${SOURCE}/base/*.def ${SOURCE}/ops/*.h ${SOURCE}/ops/*.cpp
     ${SOURCE}/ops/*.def ${SOURCE}/kernel/*.h ${SOURCE}/kernel/*.cpp ${SOURCE}/backends/*.h ${SOURCE}/backends/llvm/*.cpp
     ${SOURCE}/runtime/image.h ${SOURCE}/runtime/disk_cache.cpp ${SOURCE}/engine/kernel_file.cpp ${SOURCE}/../include/sinter/dtype.h ${SOURCE}/../include/sinter/dtype.def)
list(FILTER files EXCLUDE REGEX "^(kernel/lower|backends/cpu)/")  # they make other kernels, not other code for a kernel
list(SORT files)
set(text "${OTHER}")
foreach(file ${files})
  file(SHA256 ${SOURCE}/${file} digest)
  string(APPEND text "\n${file} ${digest}")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING ${digest} 0 32 digest)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Written by cmake/identity.cmake.
#include \"base/build.h\"

const char* sinter::base::build_identity() { return \"${digest}\"; }
")  # written only when it differs
