# test_docs: every C++ block of the user's pages, compiled against the public interface and run (tools/doc_blocks.py).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(doc_pages)
foreach(page README.md docs/COMPILE.md)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${page})
    list(APPEND doc_pages ${page})
  endif()
endforeach()
set(doc_program ${CMAKE_BINARY_DIR}/generated/doc_blocks.cpp)
add_custom_command(OUTPUT ${doc_program} COMMAND Python3::Interpreter tools/doc_blocks.py ${doc_program} ${doc_pages}
                   DEPENDS tools/doc_blocks.py ${doc_pages} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} VERBATIM)
add_executable(test_docs ${doc_program})
target_link_libraries(test_docs PRIVATE sinter GTest::gtest_main)
add_dependencies(test_docs sinter_codegen)
