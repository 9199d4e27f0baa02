# acb_test(name LABEL unit SOURCES a.cpp b.cpp LIBRARIES x y) builds one GoogleTest program and registers each
# of its cases with ctest under the label.
include(CTest)
include(GoogleTest)
add_custom_target(unit_tests)
function(acb_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE acb_options ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(arg_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
endfunction()

# acb_script_test(name LABEL cluster TIMEOUT 120 COMMAND cmd args...) registers a script; exit 77 is a skip.
function(acb_script_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "ACB_BUILD_DIR=${PROJECT_BINARY_DIR}")
  # A whole cluster, or timing under a fault, needs the machine for itself.
  if(arg_LABEL MATCHES "cluster|fault|slurm")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()
