from discreet.audit import exact, series
from discreet.audit import lattice_distribution as lattice
from discreet.audit._attack import attack
from discreet.audit.case import Case
from discreet.audit.cases.mechanisms import cases
from discreet.audit.exact import gaussian_lower_bound
from discreet.audit.runner import audit
from discreet.audit.sensitivity import WrongSensitivity, check_sensitivity
from discreet.audit.side_channels import precision_attack, timing_probe

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
