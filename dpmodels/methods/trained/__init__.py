"""Systems whose networks are trained by DP-SGD inside the charge."""
