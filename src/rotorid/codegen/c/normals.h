/* Eight standard normal numbers at once, as in rotorid.numerics.draws: the same bits, and the same lines of its table. */
#ifndef ROTORID_NORMALS_H
#define ROTORID_NORMALS_H
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

typedef double eight __attribute__((vector_size(64)));
typedef uint64_t words __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(32)));
typedef int32_t integers __attribute__((vector_size(32)));

typedef struct {
  float value, slope;
} line;

static line table[TABLE_LINES];

__attribute__((visibility("default"))) void load_table(const line *lines) { memcpy(table, lines, sizeof table); }

/* A key, and a counter. */
typedef struct {
  uint64_t key, start;
} source;

static inline words turned(words x) { return (x >> 32) | (x << 32); }

static inline words bits(source s, uint64_t first) {
  const words place = {0, 1, 2, 3, 4, 5, 6, 7};
  const words y = (place + (s.start + first)) * s.key, z = y + s.key;
  words x = turned(y * y + y);
  x = turned(x * x + z);
  x = turned(x * x + y);
  return (x * x + z) >> 32;
}

/* Numbers first .. first + 7 of the stream. */
static inline eight normals(source s, uint64_t first) {
  const words b = bits(s, first);
  const floats whole = __builtin_convertvector(__builtin_convertvector(b & 0x7fffffff, integers), floats);
  const floats p = (whole + 0.5f) * 0x1p-32f;
  const integers at = ((integers)p >> TABLE_SHIFT) - TABLE_LEAST;
#ifdef __AVX512F__
  const __m512i found = _mm512_i32gather_epi64((__m256i)at, table, sizeof(line));
  const eight value = (eight)_mm512_cvtps_pd((__m256)_mm512_cvtepi64_epi32(found));
  const eight slope = (eight)_mm512_cvtps_pd((__m256)_mm512_cvtepi64_epi32(_mm512_srli_epi64(found, 32)));
#else
  eight value, slope;
  for (int i = 0; i < 8; i++) value[i] = table[at[i]].value, slope[i] = table[at[i]].slope;
#endif
  const eight z = value + slope * __builtin_convertvector(p, eight);
  return (eight)((words)z ^ (~(b << 32) & (1ull << 63)));
}

#endif
