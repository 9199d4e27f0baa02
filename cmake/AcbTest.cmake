# acb_test(name LABEL unit SOURCES a.cpp b.cpp LIBRARIES x y) builds one GoogleTest program and registers each
# of its cases with ctest under the label.
#
# PROCESSORS says how much of the machine a test takes, of the six parts that tests/run.sh shares out: half of
# them, or a third for a cluster, which mostly waits for Slurm's timers.
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
                       PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} PROCESSORS 3)
endfunction()

# acb_script_test(name LABEL cluster TIMEOUT 300 [COST 300] [ALONE] COMMAND cmd args...) registers a script; exit 77
# is a skip. ALONE: nothing runs beside it. COST: the seconds that it takes; the longest start first.
function(acb_script_test name)
  cmake_parse_arguments(arg "ALONE" "LABEL;TIMEOUT;COST" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "ACB_BUILD_DIR=${PROJECT_BINARY_DIR}")
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  if(arg_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  elseif(arg_LABEL MATCHES "cluster|fault")
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  else()
    set_tests_properties(${name} PROPERTIES PROCESSORS 3)
  endif()
endfunction()
