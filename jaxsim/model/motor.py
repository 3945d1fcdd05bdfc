"""Where the parameters of a DC motor stand, by the names of MuJoCo's technical note on them.

    gainprm  R  K  tempcoef  reftemp  kp  ki  kd  Vmax
    biasprm  cogging amplitude  poles  phase  coulomb  static  stribeck
    dynprm   L/R  di/dt max  thermal R  thermal C  ambient  sigma0  sigma1  slewmax  Imax

K [N m/A] is the geometric mean of torque and back-EMF constant, R [Ohm] the terminal resistance.
"""

R, K, TEMPCOEF, REFTEMP, KP, KI, KD, VMAX = range(8)  # in gainprm
AMPLITUDE, POLES, PHASE, COULOMB, STATIC, STRIBECK = range(6)  # in biasprm
TAU, RATE, THERMAL_R, THERMAL_C, AMBIENT, SIGMA0, SIGMA1, SLEW, IMAX = range(9)  # in dynprm
