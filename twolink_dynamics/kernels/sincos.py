"""Constants of the branch-free sine and cosine that the LLVM and C emitters write out.

x = k π/2 + r with |r| ≤ π/4 (a little more where rounding decides), Cody–Waite with π/2 in parts; then the polynomials
of fdlibm's k_sin.c and k_cos.c, and the quadrant k mod 4 picks and signs. k is rounded by adding 1.5·2⁵²: its low bits
then stand in the mantissa, no conversion is needed. With a fused multiply-add two parts of 53 bits suffice; without it
four of 27 bits keep every product k·part exact for |k| < 2²⁶. Angles beyond LIMIT, ±inf and NaN give NaN.
"""
LIMIT = 1.0e8  # [rad]
TWO_OVER_PI = 0.6366197723675814
ROUNDER = 6755399441055744.0  # 1.5 · 2⁵²
HALF_PI_53 = (1.5707963267948966, 6.123233995736766e-17)
HALF_PI_27 = (1.570796325802803, 9.920935739593517e-10, 5.721188709663575e-18, 1.6446256892965207e-26)
SINE = (1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
        -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01)
COSINE = (-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
          2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02)
