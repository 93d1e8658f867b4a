"""What is promised, paid and kept: plans, the steps of a measurement, the one draw, and the releases it leaves."""
