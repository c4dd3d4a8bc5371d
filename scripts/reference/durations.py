"""Durations as texts: how the program prints them, and patterns that accept what its parser accepts."""

INT64_MAX = 2**63 - 1
INT64_MIN = -2**63
UNITS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def text(ns):
    """1m30s, 24h, 500ms; the shortest form, for people."""
    if ns == 0:
        return "0s"
    parts, left = "", abs(ns)
    for unit, size in UNITS.items():
        if left // size:
            parts += f"{left // size}{unit}"
        left %= size
    return ("-" if ns < 0 else "") + parts


def _below(limit):
    """Ways to write a whole number below `limit` without leading zeros; 0 may be left to them."""
    digits = str(limit)
    ways = [_digits(1, len(digits) - 1)] if len(digits) > 1 else []
    for i, digit in enumerate(digits):
        lowest, highest = (1 if i == 0 else 0), int(digit) - 1
        if lowest <= highest:
            span = str(lowest) if lowest == highest else f"[{lowest}-{highest}]"
            ways.append(digits[:i] + span + _digits(len(digits) - i - 1))
    return ways


def _digits(least, most=None):
    if most is None:
        return "" if least == 0 else "[0-9]" if least == 1 else f"[0-9]{{{least}}}"
    return "[0-9]" if least == most else f"[0-9]{{{least},{most}}}"


def _part(unit, limit_ns):
    """One number with its unit, up to `limit_ns`. A fraction after the largest whole number that does not
    divide evenly is let through: no pattern of sane length tells how much is left."""
    whole, rest = divmod(limit_ns, UNITS[unit])
    if whole == 0:
        return f"0+(\\.{'[0-9]' if rest else '0'}*)?{unit}|\\.{'[0-9]' if rest else '0'}+{unit}"
    ways = "|".join(_below(whole) + ["0"])
    return f"0*(({ways})(\\.[0-9]*)?|{whole}(\\.{'[0-9]' if rest else '0'}*)?){unit}|\\.[0-9]+{unit}"


def _parts(limit_ns):
    return "(" + "|".join(_part(unit, limit_ns) for unit in UNITS) + ")+"


def pattern(low, high):
    """Durations from `low` to `high`, each part for itself; "" is one, too: it means none was written."""
    if low > 0:
        return f"^((?=.*[1-9])\\+?{_parts(high)})?$"
    negative = f"-(0|{_parts(-low)})" if low < 0 else f"-(?!.*[1-9])(0|{_parts(high)})"
    return f"^(\\+?(0|{_parts(high)})|{negative})?$"
