# Build options, and the interface target that our own targets link privately for warnings and sanitizers.
option(BUILD_TESTING "build the tests" ON)
option(ACB_WERROR "treat warnings as errors" OFF)
set(ACB_SANITIZE "" CACHE STRING "sanitizers, as for -fsanitize= (address,undefined or thread)")
# Where the distribution's Slurm has its own plugins; Debian's place where there is none to look at.
find_path(ACB_SLURM_PLUGIN_DIR auth_munge.so PATHS "${CMAKE_INSTALL_FULL_LIBDIR}" /usr/lib64 /usr/lib
  PATH_SUFFIXES slurm-wlm slurm NO_DEFAULT_PATH DOC "Slurm's PluginDir")
if(NOT ACB_SLURM_PLUGIN_DIR)
  set(ACB_SLURM_PLUGIN_DIR "${CMAKE_INSTALL_FULL_LIBDIR}/slurm-wlm" CACHE PATH "Slurm's PluginDir" FORCE)
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "build type" FORCE)
endif()

# ccache caches nothing that uses a precompiled header, unless told to trust it.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
endif()

add_library(acb_options INTERFACE)
target_compile_options(acb_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wcast-qual -Wformat=2 -Wimplicit-fallthrough>
  $<$<AND:$<BOOL:${ACB_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
  # One precompiled header for libraries and programs alike: it must not differ in -fPIC and -fPIE.
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE "${CMAKE_CXX_COMPILE_OPTIONS_PIC}")
  # GCC 12 sees faults in std::string's own concatenation (GCC bugs 105329 and 105651) out of one.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(acb_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-restrict
      -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endif()
if(CMAKE_UNITY_BUILD)
  # A source that another includes is taken for a header, which may not hide a class's private parts.
  target_compile_options(acb_options INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
# Bits must not depend on the compiler's liberty to fuse a*b+c.
target_compile_options(acb_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(ACB_SANITIZE)
  target_compile_options(acb_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ACB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(acb_options INTERFACE -fsanitize=${ACB_SANITIZE})
endif()
