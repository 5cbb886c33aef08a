from discreet.audit import exact, lattice_distribution, series
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
    "check_sensitivity",
    "exact",
    "gaussian_lower_bound",
    "lattice_distribution",
    "mechanism_cases",
    "precision_attack",
    "run_audit",
    "series",
    "timing_attack",
]
