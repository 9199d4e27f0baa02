# What concerns all of our targets at once; called when they are all defined.

# acb_targets_under(var folder) lists the build targets of a source folder and the folders below.
function(acb_targets_under var folder)
  get_property(all DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(sub IN LISTS below)
    acb_targets_under(more "${sub}")
    list(APPEND all ${more})
  endforeach()
  set(${var} "${all}" PARENT_SCOPE)
endfunction()

# The library headers that cost most to parse are parsed once for all libraries and programs, and once with
# GoogleTest for the unit tests. It saves time and nothing else: every source still includes what it uses, and
# CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds the same. Apart stay the plugins and the layout, which use no
# library of base, and what is compiled with -fopenmp.
function(acb_share_precompiled_headers)
  set(common <nlohmann/json.hpp> <spdlog/spdlog.h> <spdlog/fmt/ranges.h> <tl/expected.hpp>
    <algorithm> <chrono> <filesystem> <functional> <map> <optional> <string> <thread> <vector>)
  set(apart acb_base base_test acb_layout layout_test acb_ops matmul-bench
    acb_spank_core acb_spank_base spank_plugin_test job_submit_driver)
  target_precompile_headers(acb_base PRIVATE ${common})
  if(TARGET base_test)
    target_precompile_headers(base_test PRIVATE ${common} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  foreach(part IN ITEMS cloudburst mpi_runtime contrib/cloudsim tests/unit)
    if(BUILD_TESTING OR NOT part MATCHES "^tests")
      acb_targets_under(more "${PROJECT_SOURCE_DIR}/${part}")
      list(APPEND targets ${more})
    endif()
  endforeach()
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(target IN_LIST apart OR NOT type MATCHES "STATIC|EXECUTABLE")
      continue()
    endif()
    if("GTest::gmock" IN_LIST libraries)
      target_precompile_headers(${target} REUSE_FROM base_test)
    else()
      target_precompile_headers(${target} REUSE_FROM acb_base)
    endif()
  endforeach()
endfunction()

# `programs` builds what an installation has and the simulated cloud, without the tests.
function(acb_add_programs_target)
  add_custom_target(programs)
  foreach(part IN ITEMS spank_plugin cloudburst mpi_runtime contrib/cloudsim)
    acb_targets_under(targets "${PROJECT_SOURCE_DIR}/${part}")
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      if(type MATCHES "EXECUTABLE|MODULE_LIBRARY")
        add_dependencies(programs ${target})
      endif()
    endforeach()
  endforeach()
endfunction()
