"""Fitted things, in the style of scikit-learn: regression and private gradient descent.

Needs the extra ``discreet[models]``. Bounds are declared, noise is drawn on a grid, and every fit
states its guarantee and can be charged to an account.
"""
