# find_package(sinter) defines sinter::sinter. The library brings its own dependencies: nothing else has to be found.
include(${CMAKE_CURRENT_LIST_DIR}/sinterTargets.cmake)
