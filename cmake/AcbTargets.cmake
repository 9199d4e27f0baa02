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

# `programs` builds what an installation has and the simulated cloud, without the tests; `unit_tests` the
# programs of the unit label.
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
