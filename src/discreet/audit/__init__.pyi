from discreet.audit import exact, series
from discreet.audit import lattice_distribution as lattice
from discreet.audit._attack import attack
from discreet.audit.case import AuditCase
from discreet.audit.cases.mechanisms import mechanism_cases
from discreet.audit.exact import gaussian_lower_bound
from discreet.audit.runner import run_audit
from discreet.audit.sensitivity import SensitivityError, check_sensitivity
from discreet.audit.side_channels import precision_attack, timing_attack

__all__ = [
    "AuditCase",
    "SensitivityError",
    "attack",
    "run_audit",
    "mechanism_cases",
    "check_sensitivity",
    "exact",
    "gaussian_lower_bound",
    "lattice",
    "precision_attack",
    "series",
    "timing_attack",
]
