from discreet.leakage import exact, series
from discreet.leakage.attacks import attack
from discreet.leakage.auditing import audit
from discreet.leakage.case import Case
from discreet.leakage.catalogue import cases
from discreet.leakage.precision import precision_attack, timing_probe
from discreet.leakage.sensitivity import WrongSensitivity, check_sensitivity

__all__ = [
    "Case",
    "WrongSensitivity",
    "attack",
    "audit",
    "cases",
    "check_sensitivity",
    "exact",
    "precision_attack",
    "series",
    "timing_probe",
]
