# acb_optional_part(NAME "what it is for") defines the cache variable ACB_NAME (AUTO, ON or OFF) and sets
# ACB_HAVE_NAME. AUTO builds the part where its packages are found, ON makes their absence an error, OFF
# never looks. A macro, since what find_package sets must reach the caller.
macro(acb_optional_part name purpose)
  set(ACB_${name} AUTO CACHE STRING "${purpose}: AUTO, ON or OFF")
  set_property(CACHE ACB_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT "${ACB_${name}}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "ACB_${name}: '${ACB_${name}}' is none of AUTO, ON, OFF")
  endif()
  set(ACB_HAVE_${name} FALSE)
  if(NOT "${ACB_${name}}" STREQUAL "OFF")
    include(AcbFind${name})
    if(NOT ACB_HAVE_${name} AND "${ACB_${name}}" STREQUAL "ON")
      message(FATAL_ERROR "ACB_${name}=ON, but ${ACB_${name}_MISSING}")
    endif()
  endif()
  add_feature_info(${name} ACB_HAVE_${name} "${purpose}")
endmacro()
