"""Why a client is dropped from a federation, in words that say nothing of its records: there are no others."""

LOST = "its process ended before it had released anything"
LATE = "it did not release anything in time"
REFUSED = "its account refused the charge"
CHARGED = "its data were charged to another account"
UNFIT = "its records are not what the contract says of them"
ABSENT = "its data were not found"
FAILED = "its process failed"
UNPLANNED = "its release is not the one that was planned"
DISAGREED = "it does not agree to what it was asked to release"
TWICE = "it joined more than once"
WHY_DROPPED = (LOST, LATE, REFUSED, CHARGED, UNFIT, ABSENT, FAILED, UNPLANNED, DISAGREED, TWICE)
