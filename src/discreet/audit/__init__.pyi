from discreet.leakage import exact, lattice, series
from discreet.leakage.attacks import attack
from discreet.leakage.auditing import audit
from discreet.leakage.case import Case
from discreet.leakage.catalogue import cases
from discreet.leakage.linear import gaussian_lower_bound
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
    "gaussian_lower_bound",
    "lattice",
    "precision_attack",
    "series",
    "timing_probe",
]
