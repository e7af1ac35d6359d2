# libnoria.so and libnoria.a out of the same objects.
set(NORIA_EXPORTS_MAP ${PROJECT_SOURCE_DIR}/capi/src/exports.map)

add_library(noria SHARED $<TARGET_OBJECTS:noria_objects>)
add_library(noria_static STATIC $<TARGET_OBJECTS:noria_objects>)
add_library(noria::noria ALIAS noria)
add_library(noria::noria_static ALIAS noria_static)

set_target_properties(noria noria_static PROPERTIES OUTPUT_NAME noria LINKER_LANGUAGE CXX)
set_target_properties(noria PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION 0
  LINK_DEPENDS ${NORIA_EXPORTS_MAP})

foreach(library noria noria_static)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/capi/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${library} PRIVATE $<BUILD_INTERFACE:noria_flags>)
endforeach()

target_link_options(noria PRIVATE "LINKER:--version-script=${NORIA_EXPORTS_MAP}" LINKER:-z,now)
if(NOT NORIA_SANITIZE)
  # Sanitized code refers to a runtime that only the program brings.
  target_link_options(noria PRIVATE LINKER:--no-undefined)
endif()

if(NORIA_LTO_ACTIVE)
  # Fat objects: the shared library is optimised as a whole; the archive is stripped back to plain
  # machine code, which any linker of any compiler reads.
  target_compile_options(noria_objects PRIVATE -flto=auto -ffat-lto-objects)
  target_link_options(noria PRIVATE -flto=auto -O2)
  add_custom_command(TARGET noria_static POST_BUILD VERBATIM
    COMMAND ${CMAKE_OBJCOPY} --wildcard --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_*
            --strip-symbol=__gnu_lto_slim $<TARGET_FILE:noria_static>)
endif()
