"""Networks and the loop that reconstructs a released embedding: post-processing, free for ever."""
