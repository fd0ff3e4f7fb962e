"""Texts as vectors, so that alike texts can be found and equal facts be folded into one."""
