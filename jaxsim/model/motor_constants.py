"""Constants of a DC motor from the attributes of `<dcmotor>`: K, R, time constants and bounds.

MJCF specifies a motor by numbers of its data sheet. They are not independent: K follows from the
nominal point too, a bound of the current gives a bound K i of the torque, an inductance a time
constant L / R. MuJoCo's technical note "MuJoCo DC Motor Model" (XML reference: actuator/dcmotor)
has the equations. The compiler evaluates them with numpy, identification and randomization with
traced numbers, so that every branch is a `where` of the array module that is passed in.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# Attributes that determine constants, with their count of numbers.
MOTOR_ATTRIBUTES: Mapping[str, int] = {
    "motorconst": 2,
    "resistance": 1,
    "nominal": 3,
    "saturation": 3,
    "inductance": 2,
    "thermal": 6,
    "damping": 3,
}

# The numbers of attributes as they are written in the file, padded with zeros.
WrittenAttributes = Mapping[str, Any]


class MotorConstants(NamedTuple):
    """Constants of a motor.

    Attributes:
      K: motor constant [N m/A].
      R: terminal resistance [Ohm].
      tau: electrical time constant L / R [s].
      torque: bound of the torque [N m]; 0: none.
      rate: bound of di/dt [A/s]; 0: none.
      thermal_R, thermal_C: thermal resistance [K/W] and capacitance [J/K].
      ambient: ambient temperature [K, or degrees Celsius].
      tempcoef, reftemp: coefficient of R(T) [1/K], and its reference temperature in the unit of
        `ambient`.
    """

    K: Any = 0.0
    R: Any = 0.0
    tau: Any = 0.0
    torque: Any = 0.0
    rate: Any = 0.0
    thermal_R: Any = 0.0
    thermal_C: Any = 0.0
    ambient: Any = 0.0
    tempcoef: Any = 0.0
    reftemp: Any = 0.0


def motor_constants(
    xp: Any, start: MotorConstants, elements: Iterable[WrittenAttributes]
) -> MotorConstants:
    """Return the constants after elements, the defaults of a class first and the actuator last.

    Args:
      xp: `numpy`, or `jax.numpy` for traced numbers.
      start: constants before the first element.
      elements: attributes of each by name, see `MOTOR_ATTRIBUTES`; absent ones are not written.
    """
    found = start
    for written in elements:
        for read in (_electrical, _inductance, _saturation, _thermal):
            found = read(xp, found, written)
    return found


def _electrical(xp: Any, now: MotorConstants, written: WrittenAttributes) -> MotorConstants:
    """Set K and R from their attributes or the nominal point.

    K is the geometric mean of torque and back-EMF constant, or the one that is given.
    """
    torque, back = written.get("motorconst", (now.K, 0.0))
    voltage, stall, speed = written.get("nominal", (0.0, 0.0, 0.0))
    (R,) = written.get("resistance", (now.R,))
    drag = written.get("damping", (0.0,))[0] * speed
    # The back-EMF constant that is not given follows from the nominal point.
    if "nominal" in written:
        point = (voltage > 0) & (speed > 0) & (back <= 0)
        nominal = _back_emf(xp, R, voltage, stall, xp.where(point, speed, 1.0), drag)
        back = xp.where(point, nominal, back)
    both = (torque > 0) & (back > 0)
    mean = xp.sqrt(xp.where(both, torque * back, 1.0))
    K = xp.where(both, mean, xp.maximum(torque, back))
    # The resistance that is not given follows from the stall torque, K V / R.
    stalls = (stall > 0) & (R <= 0)
    R = xp.where(stalls, K * voltage / xp.where(stalls, stall, 1.0), R)
    return now._replace(K=K, R=R)


def _back_emf(xp: Any, R: Any, voltage: Any, stall: Any, speed: Any, drag: Any) -> Any:
    """Return K of a motor that rotates at the no-load speed w under the voltage V, against a
    damping B.

    At that speed the torque balances the damping, K (V - K w) / R = B w. Without R, the stall
    torque T gives R = K V / T. A motor too weak for its damping gets the K of one without damping.
    `drag` is B w.
    """
    # With a resistance: the larger root of the quadratic equation, if it is real.
    discriminant = voltage**2 - 4 * drag * R * speed
    real = (drag > 0) & (R > 0) & (discriminant > 0)
    by_resistance = (voltage + xp.sqrt(xp.where(real, discriminant, 1.0))) / (2 * speed)
    # Without: the resistance is eliminated.
    strong = (drag > 0) & (R <= 0) & (drag < stall)
    by_stall = voltage * (stall - drag) / (xp.where(strong, stall, 1.0) * speed)
    return xp.where(real, by_resistance, xp.where(strong, by_stall, voltage / speed))


def _inductance(xp: Any, now: MotorConstants, written: WrittenAttributes) -> MotorConstants:
    """Set the electrical time constant: L / R, or the given one if L or R is missing."""
    if "inductance" not in written:
        return now
    henry, tau = written["inductance"]
    given = (henry > 0) & (now.R > 0)
    return now._replace(tau=xp.where(given, henry / xp.where(given, now.R, 1.0), tau))


def _saturation(xp: Any, now: MotorConstants, written: WrittenAttributes) -> MotorConstants:
    """Set the bound of the torque, as given or K times that of the current, and that of di/dt."""
    if "saturation" not in written:
        return now
    torque, current, rate = written["saturation"]
    bound = xp.where(torque > 0, torque, now.K * current)
    return now._replace(torque=xp.where(bound > 0, bound, 0.0), rate=rate)


def _thermal(xp: Any, now: MotorConstants, written: WrittenAttributes) -> MotorConstants:
    """Set thermal resistance and capacitance from two of them and their time constant R C."""
    if "thermal" not in written:
        return now
    R, C, timeconst, tempcoef, reftemp, ambient = written["thermal"]
    # The missing one of R and C follows from the time constant.
    by_R, by_C = (timeconst > 0) & (R > 0), (timeconst > 0) & (R <= 0) & (C > 0)
    new = now._replace(
        thermal_R=xp.where(by_C, timeconst / xp.where(by_C, C, 1.0), R),
        thermal_C=xp.where(by_R, timeconst / xp.where(by_R, R, 1.0), C),
        ambient=ambient,
        tempcoef=tempcoef,
        reftemp=reftemp,
    )
    # Without any of the three the attribute is not in use.
    used = (R > 0) | (C > 0) | (timeconst > 0)
    return MotorConstants(*(xp.where(used, a, b) for a, b in zip(new, now, strict=True)))
