"""Which noise for one number? Every noise distribution, by its expected error, before any data."""

import discreet


def main() -> None:
    """Compare the distributions for a mean of bounded incomes, then release it once."""
    people, largest = 20_000, 200_000
    mean_moves_by = largest / people  # one person replaced by another
    for loss in ("mse", "mae", "p95"):
        noise = discreet.best_additive_noise(
            sensitivity=mean_moves_by,
            epsilon=0.5,
            delta=1e-6,
            loss=loss,
            domain="reals",
            relation=discreet.NeighboringRelation.REPLACE_ONE,
        )
        print(noise.explain(), end="\n\n")
    print("mean income, released:", round(noise.release(41_234.56), 2))
    print(noise.certify())


if __name__ == "__main__":
    main()
