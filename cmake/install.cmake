# `cmake --install build`: libraries, headers, and the package that `find_package(sinter)` finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinter)

# The code generator is opened at run time and has to lie beside libsinter.so.
install(TARGETS sinter EXPORT sinterTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sinter_codegen LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sinter ${CMAKE_BINARY_DIR}/generated/sinter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT sinterTargets NAMESPACE sinter:: DESTINATION ${package_dir})
configure_file(cmake/sinterConfig.cmake ${CMAKE_BINARY_DIR}/sinterConfig.cmake COPYONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sinterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sinterConfig.cmake ${CMAKE_BINARY_DIR}/sinterConfigVersion.cmake DESTINATION ${package_dir})

# The same for those who do not use CMake.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sinter.pc.in ${CMAKE_BINARY_DIR}/sinter.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sinter.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
