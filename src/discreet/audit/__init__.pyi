from discreet.audit import exact as exact
from discreet.audit import lattice_distribution as lattice_distribution
from discreet.audit import series as series
from discreet.audit._attack import attack as attack
from discreet.audit.case import AuditCase as AuditCase
from discreet.audit.cases.mechanisms import mechanism_cases as mechanism_cases
from discreet.audit.exact import gaussian_lower_bound as gaussian_lower_bound
from discreet.audit.runner import run_audit as run_audit
from discreet.audit.sensitivity import SensitivityError as SensitivityError
from discreet.audit.sensitivity import check_sensitivity as check_sensitivity
from discreet.audit.side_channels import precision_attack as precision_attack
from discreet.audit.side_channels import timing_attack as timing_attack

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
