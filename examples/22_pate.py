"""Labels from private votes: a rule chosen beforehand, teachers, a student that can be published.

A clinic group has private records and public cases without a diagnosis. Patients chose one of two
levels of privacy. Teachers, each trained on some patients, vote on the public cases.
"""

# %%
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import discreet
from discreet.models import PATEClassifier
from discreet.models.pate import (
    ConfidentGNMax,
    assign_weighting,
    count_votes,
    expected_label_quality,
    plan_labels,
    simulate_votes,
    train_student,
    tune_aggregator,
    vote_weights,
)

limits = {"strict": discreet.approx_dp(1, 1e-5), "open": discreet.approx_dp(3, 1e-5)}
people = {"strict": 50, "open": 50}
classes, teachers = 3, 200
assignment = assign_weighting(
    teachers, people=people, sensitivities=vote_weights(limits), key="2026"
)

# %% An aggregator of the literature, and what it would do on imagined votes.
imagined = simulate_votes(500, teachers=teachers, classes=classes, accuracy=0.75, spread=2.0)
counts = count_votes(imagined.votes, assignment, classes=classes)
usual = ConfidentGNMax(
    threshold=0.8 * teachers, sigma_threshold=0.6 * teachers, sigma_votes=0.16 * teachers
)
share, quality = expected_label_quality(counts, imagined.truth, usual)
plain = plan_labels(assignment, usual, limits, classes=classes, answered_share=share, items=3000)
print(f"usual rule:    {plain.answers} labels, {quality:.1%} of them right")

# %% An aggregator for the same guarantees whose labels are as good: there are more of them.
choice = tune_aggregator(
    counts, imagined.truth, assignment=assignment, limits=limits, accuracy=quality, items=3000
)
print(f"searched rule: {choice.plan.answers} labels, {choice.accuracy:.1%} of them right")

# %% Train and label. (Records are simulated here.)
X, y = make_classification(
    17_000, 12, n_informative=6, n_classes=classes, class_sep=1.2, random_state=1
)
private, public, test = slice(0, 12_000), slice(12_000, 15_000), slice(15_000, None)
owners = np.arange(12_000)
levels = np.where(owners % 2, "open", "strict")
teacher = LogisticRegression()
ensemble = PATEClassifier(teacher, assignment=assignment, classes=classes)
ensemble.fit(X[private], y[private], owners=owners, privacy_levels=levels)
labels = ensemble.label(X[public], plan=choice.plan)
print(f"published {len(labels.answered)} labels, {labels.query_count} items were asked")

# %% The student sees public items and published labels alone.
student = train_student(LogisticRegression(), X[public], labels)
wider = train_student(LogisticRegression(), X[public], labels, semi_supervised=True)
print(f"student: {student.score(X[test], y[test]):.1%} right on new cases")
print(f"  with the unlabeled items too: {wider.score(X[test], y[test]):.1%}")
best = LogisticRegression().fit(X[private], y[private])
print(f"  a model without privacy: {best.score(X[test], y[test]):.1%}")
print({name: round(e, 2) for name, e in labels.guarantee.epsilons(1e-5).items()})
