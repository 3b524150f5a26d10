"""Build files of an estimator in C: CMakeLists.txt and Makefile."""

from __future__ import annotations

from typing import Final

SHORTER: Final = "-fno-math-errno -fno-asynchronous-unwind-tables"
"""Options of GCC and Clang for shorter code: `errno` is not read, and C has no exceptions. Numbers stay the same."""


def cmake(name: str) -> str:
    """The text of CMakeLists.txt."""
    return f"""cmake_minimum_required(VERSION 3.10)
project({name} C)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3")
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

add_library({name} STATIC {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({name} PRIVATE {SHORTER})
endif()
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()

add_executable({name}_replay main.c)
target_link_libraries({name}_replay {name})

add_executable({name}_check check.c)
target_link_libraries({name}_check {name})

enable_testing()
add_test(NAME golden COMMAND {name}_check ${{CMAKE_CURRENT_SOURCE_DIR}}/golden.csv)
"""


def makefile(name: str) -> str:
    """The text of a Makefile."""
    return f"""CC ?= cc
CFLAGS ?= -O3
FLAGS = -std=c99 -Wall -Wextra -Wconversion -pedantic {SHORTER} $(CFLAGS)

all: replay

replay: main.c {name}.o
\t$(CC) $(FLAGS) -o $@ main.c {name}.o -lm

golden: check.c {name}.o
\t$(CC) $(FLAGS) -o $@ check.c {name}.o -lm

{name}.o: {name}.c {name}.h
\t$(CC) $(FLAGS) -c -o $@ {name}.c

check: golden
\t./golden golden.csv

clean:
\trm -f replay golden {name}.o

.PHONY: all check clean
"""
