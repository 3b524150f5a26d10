/* Time of a product of two 10 x 10 matrices: the unit of the times of steps on board. X <- A X, with an orthogonal A. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#define N 10
#define PRODUCTS 20000
#define ROUNDS 20

static real A[N][N], X[2][N][N];

static void multiply(real (*a)[N], real (*x)[N], real (*result)[N]) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < N; j++) result[i][j] = 0;
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++) result[i][j] += a[i][k] * x[k][j];
  }
}

int main(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      A[i][j] = (real)(sqrt((i ? 2.0 : 1.0) / N) * cos(3.14159265358979 * i * (j + 0.5) / N)); /* cosine transform */
    }
  double shortest = HUGE_VAL;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) X[0][i][j] = i == j;
    const clock_t start = clock();
    for (int n = 0; n < PRODUCTS; n++) multiply(A, X[n % 2], X[1 - n % 2]);
    shortest = fmin(shortest, (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / PRODUCTS);
  }
  double norm = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) norm += X[0][i][j] * X[0][i][j];
  if (fabs(norm - N) > 0.1) return 1;
  printf("%.5f us a product\n", shortest);
  return 0;
}
