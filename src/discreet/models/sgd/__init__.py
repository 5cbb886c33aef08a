"""Private convex learning by gradient descent: objectives, training, estimators, accounting."""
