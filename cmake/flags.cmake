# noria_flags: what every target of this tree is built with. noria_warnings: what our own code must
# pass. Neither is exported: who links Noria inherits no flag.
add_library(noria_flags INTERFACE)
add_library(noria_warnings INTERFACE)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
target_link_libraries(noria_flags INTERFACE Threads::Threads)

target_compile_options(noria_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wundef -Wvla
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<BOOL:${NORIA_WERROR}>:-Werror>)

if(NORIA_SANITIZE)
  set(sanitize -fsanitize=${NORIA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(noria_flags INTERFACE ${sanitize})
  target_link_options(noria_flags INTERFACE ${sanitize})
endif()

if(NORIA_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT NORIA_SANITIZE)
  set(NORIA_LTO_ACTIVE ON)
else()
  set(NORIA_LTO_ACTIVE OFF)
endif()

find_program(NORIA_CCACHE ccache)
mark_as_advanced(NORIA_CCACHE)
if(NORIA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${NORIA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${NORIA_CCACHE})
endif()
