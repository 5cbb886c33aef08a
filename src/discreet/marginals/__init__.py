"""Many tables of the same rows at once: plans, releases, and what is made of them."""
