# Run by the build: cmake -D OUTPUT=FILE.cpp -D OTHER=compiler... -D FUNCTION=NAME -P identity.cmake, in src/. Writes a function of
# base/build.h: a digest of every file that what is kept on disk depends on. So what another build has kept, and a code generator of
# another build, are known as such, and nobody has to remember a number.
#   build_identity  for generated code, the interface between the library and the code generator included
#   plan_identity   for plans: all that is done between a captured graph and its steps
if(FUNCTION STREQUAL "plan_identity")
  set(all)
  foreach(folder base runtime ops graph passes kernel backends engine)
    list(APPEND all ${SOURCE}/${folder}/*.h ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.def)
  endforeach()
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${all} ${SOURCE}/../include/sinter/*.h ${SOURCE}/../include/sinter/*.def)
else()
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/base/*.h ${SOURCE}/base/*.cpp ${SOURCE}/base/*.def ${SOURCE}/ops/*.h ${SOURCE}/ops/*.cpp
       ${SOURCE}/ops/*.def ${SOURCE}/kernel/*.h ${SOURCE}/kernel/*.cpp ${SOURCE}/backends/*.h ${SOURCE}/backends/llvm/*.cpp
       ${SOURCE}/runtime/image.h ${SOURCE}/runtime/disk_cache.cpp ${SOURCE}/engine/kernel_file.cpp ${SOURCE}/../include/sinter/dtype.h ${SOURCE}/../include/sinter/dtype.def)
  list(FILTER files EXCLUDE REGEX "^(kernel/lower|backends/cpu)/")  # they make other kernels, not other code for a kernel
endif()
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

const char* sinter::base::${FUNCTION}() { return \"${digest}\"; }
")  # written only when it differs
