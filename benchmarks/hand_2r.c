/* Inverse dynamics of a planar two-link arm as a patient person writes it: the textbook's closed form, four states per
   vector (gcc's vector extensions), a branch-free sine and cosine (fdlibm's polynomials, Cody-Waite with fused
   multiply-add), shuffles for rows. -DP1 -DP2 -DB -DG1 -DG2 are the arm's constants; count must be a multiple of 4. */
typedef double v __attribute__((vector_size(32), aligned(8)));
typedef long long w __attribute__((vector_size(32), aligned(8)));
#ifdef __AVX__ /* a where the mask's sign is set, else b */
#define PICK(mask, a, b) (v)__builtin_ia32_blendvpd256(b, a, (v)(mask))
#else
#define PICK(mask, a, b) (v)(((w)(a) & ((mask) < 0)) | ((w)(b) & ~((mask) < 0)))
#endif

static inline void sincos4(v x, v *sine, v *cosine) {
  const double rounder = 6755399441055744.0;
  const v shifted = x * 0.6366197723675814 + rounder, k = shifted - rounder;
  const w quadrant = (w)shifted;
  v r = x - k * 1.5707963267948966;
  r -= k * 6.123233995736766e-17;
  const v z = r * r;
  const v s = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (
      -1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (
      -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
  const v c = 1.0 + z * (-0.5 + z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (
      2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (
      2.08757232129817482790e-09 - z * 1.13596475577881948265e-11))))));
  const w swap = quadrant << 63, turn = quadrant << 62, top = {1LL << 63, 1LL << 63, 1LL << 63, 1LL << 63};
  *sine = (v)((w)PICK(swap, c, s) ^ (turn & top));
  *cosine = (v)((w)PICK(swap, s, c) ^ ((turn ^ swap) & top));
}

static inline void torque(v q1, v q2, v v1, v v2, v a1, v a2, v *t1, v *t2) {
  v s1, c1, s2, c2;
  sincos4(q1, &s1, &c1);
  sincos4(q2, &s2, &c2);
  const v gravity = G2 * (c1 * c2 - s1 * s2), h = B * c2, b = B * s2;
  *t1 = (P1 + 2.0 * h) * a1 + (P2 + h) * a2 - b * v2 * (2.0 * v1 + v2) + G1 * c1 + gravity;
  *t2 = (P2 + h) * a1 + P2 * a2 + b * v1 * v1 + gravity;
}

void hand_columns(const double *q, const double *qd, const double *qdd, double *out, long count) {
  for (long i = 0; i < count; i += 4) {
    v t1, t2;
    torque(*(v *)(q + i), *(v *)(q + count + i), *(v *)(qd + i), *(v *)(qd + count + i), *(v *)(qdd + i),
           *(v *)(qdd + count + i), &t1, &t2);
    *(v *)(out + i) = t1;
    *(v *)(out + count + i) = t2;
  }
}

void hand_rows(const double *q, const double *qd, const double *qdd, double *out, long count) {
  const w even = {0, 4, 2, 6}, odd = {1, 5, 3, 7};
  for (long i = 0; i < 2 * count; i += 8) {
    v x[3][2], t1, t2;
    const double *in[3] = {q, qd, qdd};
    for (int k = 0; k < 3; ++k) {
      const v a = *(v *)(in[k] + i), b = *(v *)(in[k] + i + 4);
      x[k][0] = __builtin_shuffle(a, b, even);
      x[k][1] = __builtin_shuffle(a, b, odd);
    }
    torque(x[0][0], x[0][1], x[1][0], x[1][1], x[2][0], x[2][1], &t1, &t2);
    *(v *)(out + i) = __builtin_shuffle(t1, t2, even);
    *(v *)(out + i + 4) = __builtin_shuffle(t1, t2, odd);
  }
}
